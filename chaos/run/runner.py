"""Plan to evidence: gate, load, faults and probes on one timeline; whatever happens, everything is reverted.

The runner interprets the plan's steps and holds no opinion about them: it never asks which fault it holds or what a
hypothesis wants. It decides only how a run ends.

    gate ─► load ────────────────────────────────────────────► drain ─► last readings ─► run_finished
              └─ timeline: windows, arm, inject, look, revert ─┘
              └─ watching: probes, guards, stop ───────────────┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from chaos.faults.fault import CannotInject
from chaos.plan.plan import Plan, PlannedFault, PlannedWindow, Step
from chaos.ports import Host
from chaos.run.keeper import FaultKeeper, Journal
from chaos.run.stop import DECIDED, ERROR, Stop

Ending = Literal["completed", "decided", "stopped", "gate_not_met", "cannot_inject", "failed"]

LOAD_LEAD_S = 0.1
GUARD_EVERY_S = 0.25
CUT_OFF_WITHIN_S = 0.05
LOAD_ENDS_AFTER_S = 0.25


@dataclass(frozen=True)
class Finish:
    """How a run ended. `reverted` is False when harm may still be in place."""

    ending: Ending
    why: str
    reverted: bool


class Traffic(Protocol):
    """The load of the whole run."""

    def planned(self) -> Mapping[str, int]:
        """Requests planned by load name."""
        ...

    async def run(self, start_at: float, stop: asyncio.Event) -> Mapping[str, Any]:
        """Send everything from monotonic `start_at` on; returns the fields of `load_finished`. Ends early on `stop`."""
        ...


class Watch(Protocol):
    """The probes of the run."""

    async def look(self) -> None:
        """Observe once."""
        ...

    async def run(self, until: asyncio.Event) -> None:
        """Observe until told to end, then once more."""
        ...


@dataclass(frozen=True)
class Trip:
    """A guard that was broken; with the outcomes it took and their likelihood ratio where it knew what is usual."""

    guard: str
    value: float
    bound: str
    samples: int | None = None
    likelihood_ratio: float | None = None


@dataclass(frozen=True)
class Foregone:
    """Hypotheses that are refuted whatever may still happen; `samples` is how many attempts that rests on."""

    hypotheses: tuple[str, ...]
    samples: int


def open_ended(_now: float) -> Foregone | None:
    """A run that is carried out to its end whatever is known by then."""
    return None


@dataclass(frozen=True)
class Crew:
    """Everything a run needs besides its plan, joined by `chaos.wiring`.

    `gate` returns None when users are served now, else why not. `guards` is asked with the run's time and answers with
    a trip or None. `alive` says whether the watchdog lives: without it nothing may be injected. `outlook` is asked like
    the guards, after them, and may end a run that has nothing left to say.
    """

    host: Host
    journal: Journal
    keeper: FaultKeeper
    traffic: Traffic
    watch: Watch
    stop: Stop
    origin: float
    gate: Callable[[], Awaitable[str | None]]
    guards: Callable[[float], Trip | None]
    alive: Callable[[], bool]
    outlook: Callable[[float], Foregone | None] = open_ended


async def run(plan: Plan, crew: Crew) -> Finish:
    """Carry out the plan. Never raises for what goes wrong in the run: the ending says it and the journal has it."""
    try:
        refused = await crew.gate()
        crew.journal.record("gate", held=refused is None, why=refused or "users are served")
        if crew.stop.requested():
            ending, why, _ = _cut_short(crew)
            return _finish(crew, Finish(ending, why, reverted=True))
        if refused is not None:
            return _finish(crew, Finish("gate_not_met", refused, reverted=True))
        await crew.watch.look()  # what the stack tells from its first request on is told after this look
        start_at = crew.host.clock.now() + LOAD_LEAD_S
        loads = [{"name": name, "planned": count} for name, count in crew.traffic.planned().items()]
        crew.journal.record("load_started", at=start_at - crew.origin, loads=loads)
    except Exception as failure:  # noqa: BLE001  whatever breaks, the run must end with a record
        return _finish(crew, Finish("failed", _told(failure), reverted=True))
    return _finish(crew, await _under_load(plan, crew, start_at))


async def _under_load(plan: Plan, crew: Crew, start_at: float) -> Finish:
    enough, ended = asyncio.Event(), asyncio.Event()
    watching = asyncio.create_task(crew.watch.run(ended))
    guarding = asyncio.create_task(_guarded(crew, start_at))
    load = asyncio.create_task(crew.traffic.run(start_at, enough))
    finish = await _timeline(plan, crew, start_at, enough)
    guarding.cancel()
    try:
        crew.journal.record("load_finished", **await load)
        await crew.keeper.settle()
        ended.set()
        await watching
    except Exception as failure:  # noqa: BLE001  evidence that could not be written must not hide that all is reverted
        ended.set()
        for task in (load, watching):
            task.cancel()
        return Finish("failed", _told(failure), finish.reverted)
    lost = crew.keeper.lost
    return finish if lost is None else Finish("failed", _told(lost), finish.reverted)


async def _timeline(plan: Plan, crew: Crew, start_at: float, enough: asyncio.Event) -> Finish:
    """Walk the steps; leave early on a stop; leave nothing behind on any way out. `enough` ends the load early."""
    faults = {f.name: f for f in plan.faults}
    windows = {w.name: w for w in plan.windows}
    ending: Ending = "completed"
    why, by = "the plan was carried out", "timeline"
    try:
        for step in plan.steps:
            if await _stopped_during(_take(step, crew, faults, windows, start_at), crew.stop):
                ending, why, by = _cut_short(crew)
                break
    except CannotInject as reason:
        ending, why, by = "cannot_inject", str(reason), "stop"
    except Exception as failure:  # noqa: BLE001  a harness error must still revert
        ending, why, by = "failed", _told(failure), "stop"
    if ending == "failed":
        crew.stop.request(ERROR, why)
    reverting = asyncio.ensure_future(crew.keeper.revert_all(by))
    if ending != "completed":
        # Ending the load is work for this loop, and every fault would have to wait for it.
        await asyncio.wait((reverting,), timeout=LOAD_ENDS_AFTER_S)
        enough.set()
    return Finish(ending, why, await reverting)


async def _take(
    step: Step,
    crew: Crew,
    faults: Mapping[str, PlannedFault],
    windows: Mapping[str, PlannedWindow],
    start_at: float,
) -> None:
    """One step when it is due. The fault verbs go to the keeper; windows are only noted."""
    await crew.host.clock.sleep_until(start_at + step.at)
    offset = start_at - crew.origin
    if step.action in ("arm", "inject") and not crew.alive():
        raise CannotInject("the watchdog is gone; nothing may be injected without it")
    if step.action == "arm":
        await crew.keeper.arm(faults[step.subject])
    elif step.action == "inject":
        await crew.keeper.inject(faults[step.subject], step.at + offset)
    elif step.action == "look":
        crew.keeper.look(faults[step.subject])
    elif step.action == "revert":
        if not await crew.keeper.revert(faults[step.subject], "timeline"):
            crew.stop.request(ERROR, f"fault {step.subject} could not be reverted; nothing more may be injected")
    elif step.action == "close_window":
        window = windows[step.subject]
        crew.journal.record("window", name=window.name, start=window.start + offset, end=window.end + offset)


async def _stopped_during(deed: Coroutine[Any, Any, None], stop: Stop) -> bool:
    """Carry it out, and cut it off wherever it is as soon as somebody stops the run. Raises what it raises.

    What was cut off in the middle of an inject is reverted like anything else, so nobody waits for a slow one.
    """
    if stop.requested():
        deed.close()
        return True
    doing, stopping = asyncio.create_task(deed), asyncio.create_task(stop.wait())
    await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
    if stopping.done() and not doing.done():
        doing.cancel()
        await asyncio.wait((doing,), timeout=CUT_OFF_WITHIN_S)
        return True
    stopping.cancel()
    doing.result()
    return False


async def _guarded(crew: Crew, start_at: float) -> None:
    """Watch the guards and the watchdog; a run whose guards cannot be watched any more ends."""
    try:
        await _guard(crew, start_at)
    except Exception as failure:  # noqa: BLE001  whatever breaks here, harm must not go on unwatched
        crew.stop.request(ERROR, _told(failure))


async def _guard(crew: Crew, start_at: float) -> None:
    """Ask four times a second; the first guard that trips stops the run, and so does the end of the watchdog."""
    when = start_at
    while not crew.stop.requested():
        when += GUARD_EVERY_S
        await crew.host.clock.sleep_until(when)
        if crew.keeper.in_force() and not crew.alive():
            crew.stop.request(ERROR, "the watchdog is gone; no fault may stay without it")
        trip = crew.guards(crew.host.clock.now() - crew.origin)
        if trip is not None:
            crew.stop.request("guard", f"{trip.guard}: {trip.value:.3g} breaks {trip.bound}")
            told = {name: value for name, value in vars(trip).items() if value is not None}
            crew.journal.record("guard_tripped", **told)
        elif not crew.stop.requested():
            _look_ahead(crew)


def _look_ahead(crew: Crew) -> None:
    """End a run that is decided already. The record comes first: the verdict counts what was known at its time."""
    foregone = crew.outlook(crew.host.clock.now() - crew.origin)
    if foregone is not None:
        crew.journal.record("decided", hypotheses=list(foregone.hypotheses), samples=foregone.samples)
        crew.stop.request(DECIDED, f"refuted whatever may still come: {', '.join(foregone.hypotheses)}")


def _finish(crew: Crew, finish: Finish) -> Finish:
    """Write the last record; a journal that cannot be written any more turns the run into a failed one."""
    try:
        crew.journal.record("run_finished", ending=finish.ending, why=finish.why, reverted=finish.reverted)
    except OSError as failure:
        return Finish("failed", _told(failure), finish.reverted)
    return finish


def _cut_short(crew: Crew) -> tuple[Ending, str, str]:
    """Ending, reason and who reverts, when somebody asked for the end: people and guards stop, errors fail, and what
    is decided is over.
    """
    stop = crew.stop
    if stop.by == ERROR:
        return "failed", stop.why, "stop"
    if stop.by == DECIDED:
        return "decided", stop.why, "stop"
    crew.keeper.note("stop_requested", by=stop.by, why=stop.why)
    return "stopped", _stopped(stop), stop.by or "stop"


def _stopped(stop: Stop) -> str:
    return f"stopped by {stop.by}" + (f": {stop.why}" if stop.why else "")


def _told(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {failure}"
