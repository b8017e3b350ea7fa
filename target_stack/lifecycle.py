"""The life of one supervised part as a state machine: `(life, event, now) -> (life, whether to start it)`.

    dead ── start ──► starting ── became ready ──► ready
      ▲                  │  ▲                        │
      │                  │  └── asked to restart ────┤
      └──────────────── died ────────────────────────┘

A dead part is started again at once, unless it keeps dying young (then later and later), somebody holds it, or a burden
makes it wait. Events carry the incarnation that they are about, so that news of an earlier life changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from target_stack.burdens import Burden, start_delay_s

FIRST_BACKOFF_S = 0.2
LONGEST_BACKOFF_S = 5.0
YOUNG_S = 2.0
"""A death within this time of the start counts as a quick one."""
HOPELESS_DEATHS = 5
"""So many quick deaths in a row before a part was ever ready mean that it cannot start (about 3 s)."""


@dataclass(frozen=True)
class Begin:
    """The stack starts this part for the first time."""


@dataclass(frozen=True)
class BecameReady:
    """Its readiness check passed."""

    incarnation: int


@dataclass(frozen=True)
class AskedToRestart:
    """It was told to end so that a new one can take its place; until it has, it finishes what it serves."""


@dataclass(frozen=True)
class Died:
    """Its first process ended, or could not be made."""

    incarnation: int


@dataclass(frozen=True)
class Hold:
    """Somebody wants it left dead while it is dead."""

    by: str


@dataclass(frozen=True)
class Release:
    """That somebody wants it back."""

    by: str


@dataclass(frozen=True)
class Lay:
    """Somebody lays a burden on its further lives; one with the same mark is replaced. `Release` takes it away."""

    burden: Burden


@dataclass(frozen=True)
class Struck:
    """A burden has ended this life."""


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = Begin | BecameReady | AskedToRestart | Died | Hold | Release | Lay | Struck | Tick


@dataclass(frozen=True)
class Life:
    """All that is known of a part's life. Times are monotonic seconds; `restart_at` is set while a restart waits."""

    phase: Literal["dead", "starting", "ready"] = "dead"
    begun: bool = False
    incarnation: int = 0
    started_at: float = 0.0
    was_ready: bool = False
    quick_deaths: int = 0
    restart_at: float | None = None
    holds: tuple[str, ...] = ()
    burdens: tuple[Burden, ...] = ()

    @property
    def state(self) -> Literal["starting", "ready", "dead", "held"]:
        """The word for the inventory: a dead part that somebody holds is `held`."""
        return "held" if self.phase == "dead" and self.holds else self.phase

    @property
    def hopeless(self) -> bool:
        """Whether it will never start: it was never ready and dies young each time."""
        return not self.was_ready and self.quick_deaths >= HOPELESS_DEATHS


def backoff_s(quick_deaths: int) -> float:
    """Pause before a restart: none after a long life, then 0.2 s doubling to 5 s."""
    if quick_deaths == 0:
        return 0.0
    return float(min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(quick_deaths - 1, 10)))


def _started(life: Life, now: float) -> tuple[Life, bool]:
    incarnation = life.incarnation + 1
    return replace(life, phase="starting", begun=True, incarnation=incarnation, started_at=now, restart_at=None), True


def _died(life: Life, now: float) -> tuple[Life, bool]:
    quick = life.quick_deaths + 1 if now - life.started_at < YOUNG_S else 0
    pause_s = max(backoff_s(quick), start_delay_s(life.burdens))
    dead = replace(life, phase="dead", quick_deaths=quick, restart_at=now + pause_s)
    return _due(dead, now)


def _due(life: Life, now: float) -> tuple[Life, bool]:
    """Start it if its restart is due and nobody holds it."""
    if life.restart_at is None or now < life.restart_at or life.holds:
        return life, False
    return _started(life, now)


def _others(burdens: tuple[Burden, ...], by: str) -> tuple[Burden, ...]:
    return tuple(each for each in burdens if each.by != by)


def step(life: Life, event: Event, now: float) -> tuple[Life, bool]:
    """The next life, and whether the part must be started now."""
    match event:
        case Begin() if not life.begun:
            return _started(life, now)
        case BecameReady(incarnation) if incarnation == life.incarnation and life.phase == "starting":
            return replace(life, phase="ready", was_ready=True), False
        case AskedToRestart() if life.phase == "ready":
            return replace(life, phase="starting"), False
        case Died(incarnation) if incarnation == life.incarnation and life.phase != "dead":
            return _died(life, now)
        case Hold(by) if by not in life.holds:
            return replace(life, holds=(*life.holds, by)), False
        case Lay(burden):
            return replace(life, burdens=(*_others(life.burdens, burden.by), burden)), False
        case Struck():
            return replace(life, burdens=tuple(each.struck() for each in life.burdens)), False
        case Release(by) if by in life.holds or any(each.by == by for each in life.burdens):
            holds = tuple(other for other in life.holds if other != by)
            freed = replace(life, holds=holds, burdens=_others(life.burdens, by))
            # Whoever reverts a kill wants the part back now, however often it died before.
            return _due(freed, max(now, freed.restart_at or now))
        case Tick():
            return _due(life, now)
        case _:
            return life, False
