"""The experiment file key by key, as settings: the one description that decoder, JSON Schema and catalog pages share.

Parts that are the same in the file and in the model (load, blast radius, ...) are described by the model's own classes.
Here stands only what differs: the top of the file, and entries whose keys depend on a name in them. A fault entry takes
the settings of its `kind`; guards and hypotheses take those of their `measure`, and bounds written in its unit.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from chaos.faults.fault import Fault
from chaos.settings import Setting, setting, settings_of
from chaos.spec.model import (
    PROFILES,
    BlastRadius,
    Client,
    FaultEntry,
    Guard,
    Hypothesis,
    Load,
    Measure,
    Profile,
    Selector,
    Slo,
    Unit,
    Windows,
    compared_in,
)
from chaos.units import Duration, Ratio

SHORTHANDS = ("event", "order", "event_count", "absent", "metric", "sql")
"""Measures that may be named by their main setting alone: `event: breaker_opened` instead of `measure: event` and the
same.
"""

OWN_BOUND = "within"
"""A measure with this setting is bounded by it and takes no `at_least` and `at_most`."""

USUAL = "usual"
"""A guard on a share that says what is usual needs no sliding window: every outcome is evidence."""

_USUAL_DOC = (
    "share while all is well: the guard trips as soon as the outcomes say that it is so no more, wrongly in at most 1% "
    "of runs"
)

BOUND_TYPES: Mapping[Unit, type] = {
    "ratio": Ratio,
    "duration": Duration,
    "count": int,
    "factor": float,
    "points": Ratio,
}


@dataclass(frozen=True, kw_only=True)
class Document:
    """The top of an experiment file."""

    version: int = setting("version of the file format; always 1")
    title: str = setting("what happens, in one line")
    why: str = setting("what the experiment is to find out, and what users may and may not feel")
    owner: str = setting("team that a finding is handed to")
    runbook: str = setting("page below runbooks/ that this rehearses; only a control may leave it out", default="")
    tags: tuple[str, ...] = setting("words to select experiments by", default=())
    profile: Profile = setting(
        "stack that it is made for: embedded, or embedded-pd (prefill and decode in engines of their own)",
        default=PROFILES[0],
    )
    blast_radius: BlastRadius = setting("the most that may be harmed")
    load: tuple[Load, ...] = setting("traffic: one load, or a list of them")
    windows: Windows = setting("lengths of the parts of the run around the faults", default=Windows())
    faults: tuple[FaultEntry, ...] = setting("what is broken, when, and for how long")
    guards: tuple[Guard, ...] = setting("rules that end the run early", default=())
    hypotheses: tuple[Hypothesis, ...] = setting("claims that the run may refute")


@dataclass(frozen=True)
class _HypothesisKeys:
    name: str = setting("name of the claim, as reports show it")
    measure: str | None = setting("what is measured; `brownout measures` lists them", default=None)
    window: str | None = setting("gate, baseline, fault, recovery, settled or the name of a fault", default=None)
    grace: Duration = setting("start of the window that is left out", default=Duration(0))


@dataclass(frozen=True)
class _ControlKeys:
    against: str | None = setting(
        "window of the same run that this one is held against; the bound is then a difference", default=None
    )
    against_load: str | None = setting(
        "load that runs beside `load` and is held against it, second by second; the bound is then a difference",
        default=None,
    )


CONTROL_KEYS = ("against", "against_load")
"""A hypothesis with one of these keys claims a difference, and its bound is written in the unit of that."""


@dataclass(frozen=True)
class _GuardKeys:
    measure: str | None = setting("what is measured; `brownout measures` lists them", default=None)


def described(cls: type) -> tuple[Setting, ...]:
    """The settings of a class."""
    return _described(cls)


@cache  # resolving type hints is most of the time it takes to read a file
def _described(cls: Hashable) -> tuple[Setting, ...]:
    return tuple(settings_of(cast("type", cls)))


def fault_settings(kind: type[Fault]) -> tuple[Setting, ...]:
    """Every key of a fault entry of this kind."""
    return (*described(FaultEntry), *described(kind))


def hypothesis_settings(measure: type[Measure], *, compares: bool = False) -> tuple[Setting, ...]:
    """Every key of a hypothesis on this measure; with `compares` its bounds are those of a difference."""
    unit = (compared_in(measure) if compares else None) or measure.unit
    bounds = () if owns_bound(measure) else _bounds(unit, at_least="smallest", at_most="largest")
    control = described(_ControlKeys) if compared_in(measure) else ()
    return (*described(_HypothesisKeys), *control, *described(measure), *bounds)


def guard_settings(measure: type[Measure]) -> tuple[Setting, ...]:
    """Every key of a guard on this measure."""
    bounds = _bounds(measure.unit, below="smallest", above="largest")
    usual = (replace(bounds[0], key=USUAL, field=USUAL, doc=_USUAL_DOC),) if measure.unit == "ratio" else ()
    return (*described(_GuardKeys), *described(Guard), *described(measure), *bounds, *usual)


def owns_bound(measure: type[Measure]) -> bool:
    """Whether the measure is bounded by its own setting, or by what it means."""
    return has_setting(measure, OWN_BOUND) or hasattr(measure, "carried_bound")


def has_setting(measure: type[Measure], key: str) -> bool:
    """Whether the measure has this setting."""
    return any(s.key == key for s in described(measure))


def common_keys() -> Mapping[str, frozenset[str]]:
    """Keys that belong to every entry, so that no fault and no measure may have a setting of that name."""
    hypothesis = {s.key for keys in (_HypothesisKeys, _ControlKeys) for s in described(keys)} | {"at_least", "at_most"}
    guard = {s.key for s in described(_GuardKeys)} | {s.key for s in described(Guard)} | {"below", "above", USUAL}
    return {
        "faults": frozenset(s.key for s in described(FaultEntry)),
        "measures": frozenset(hypothesis | guard),
    }


def home_of(key: str) -> str | None:
    """Which fixed part of the file has this key, for authors who wrote it in the wrong place."""
    return next((part for part, cls in _PARTS.items() if any(s.key == key for s in described(cls))), None)


_PARTS: Mapping[str, type[Any]] = {
    "blast_radius": BlastRadius,
    "windows": Windows,
    "client": Client,
    "slo": Slo,
    "target": Selector,
    "load": Load,
    "faults": FaultEntry,
    "hypotheses": _HypothesisKeys,
    "guards": Guard,
}


def _bounds(unit: Unit, **docs: str) -> tuple[Setting, ...]:
    written: Any = BOUND_TYPES[unit]
    return tuple(
        Setting(
            key=key,
            field=key,
            type=written | None,
            doc=f"{extreme} value that is still fine",
            required=False,
            default=None,
            least=None,
            most=None,
        )
        for key, extreme in docs.items()
    )
