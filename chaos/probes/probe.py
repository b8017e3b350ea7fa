"""What every probe promises: it reads, it changes nothing, it never raises; what it could not read is a reading too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from chaos.inventory import Target
from chaos.ports import Host


@dataclass(frozen=True)
class Reading:
    """One observation of one target.

    `values` maps a series (`name{label="x"}`) to its number; `error` says why there are none. `spans` are records of
    calls, with the columns of `chaos.journal.record.Span` but `start` and `end` in CLOCK_MONOTONIC seconds.
    """

    probe: str
    target: str
    values: Mapping[str, float] = field(default_factory=dict)
    events: tuple[Mapping[str, Any], ...] = ()
    spans: tuple[Mapping[str, Any], ...] = ()
    error: str | None = None


class Probe(Protocol):
    """Observes one aspect of every target it applies to."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    period_s: ClassVar[float]

    def applies_to(self, target: Target) -> bool:
        """Whether this target can be observed this way."""
        ...

    async def read(self, target: Target, host: Host) -> Reading:
        """One observation."""
        ...
