"""What an experiment may name, as a value handed in from outside: `spec` itself knows no concrete fault, measure or
page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.faults.fault import Fault
from chaos.spec.layout import common_keys, described
from chaos.spec.model import Measure


@dataclass(frozen=True)
class Catalog:
    """Fault and measure classes on offer, and the known prompt sets and runbooks (None: not checked).

    Raises ValueError for a catalog that no file could be read with: a name given twice, or a setting that hides a
    common key.
    """

    faults: tuple[type[Fault], ...]
    measures: tuple[type[Measure], ...]
    prompts: frozenset[str] | None = None
    runbooks: frozenset[str] | None = None

    def __post_init__(self) -> None:
        _refuse_doubles(cls.kind for cls in self.faults)
        _refuse_doubles(cls.name for cls in self.measures)
        for cls in self.faults:
            _refuse_hidden(cls, common_keys()["faults"])
        for measure in self.measures:
            _refuse_hidden(measure, common_keys()["measures"])

    def fault_kinds(self) -> dict[str, type[Fault]]:
        """Kind to class, in catalog order."""
        return {cls.kind: cls for cls in self.faults}

    def measure_names(self) -> dict[str, type[Measure]]:
        """Name to class, in catalog order."""
        return {cls.name: cls for cls in self.measures}


def _refuse_doubles(names: Iterable[str]) -> None:
    doubles = [name for name, count in Counter(names).items() if count > 1]
    if doubles:
        raise ValueError(f"named twice in the catalog: {', '.join(doubles)}")


def _refuse_hidden(cls: type, common: frozenset[str]) -> None:
    hidden = sorted({s.key for s in described(cls)} & common)
    if hidden:
        raise ValueError(f"{cls.__name__} has settings that every entry has already: {', '.join(hidden)}")
