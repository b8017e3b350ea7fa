"""When things happen: windows and steps from the lengths in the file, in seconds from the start of the load."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.plan.plan import PlannedFault, PlannedWindow, Step
from chaos.spec.model import Windows

ARM_LEAD_S = 1.0
"""The undo is on disk this long before the inject, so that writing it does not make the inject late."""

LOOK_LEAD_S = 2.5
"""The last look at a fault begins this long before its revert: an observer may need a timeout of its own to see it."""

LEASE_SLACK_S = 3.0
"""How much longer than planned a fault may stay before the watchdog takes it away from a harness that hangs."""

_ORDER = ("close_window", "revert", "look", "arm", "inject", "open_window")


def windows_of(lengths: Windows, faults: Iterable[PlannedFault]) -> tuple[PlannedWindow, ...]:
    """Baseline, one window a fault, their union `fault`, recovery and settled."""
    faults = tuple(faults)
    start = min(f.inject_at for f in faults)
    end = max(f.revert_at for f in faults)
    recovered = end + lengths.recovery
    named = (PlannedWindow(f.name, f.inject_at, f.revert_at) for f in faults if f.name != "fault")
    return (
        PlannedWindow("baseline", 0.0, start),
        *named,
        PlannedWindow("fault", start, end),
        PlannedWindow("recovery", end, recovered),
        PlannedWindow("settled", recovered, recovered + lengths.settled),
    )


def steps_of(windows: tuple[PlannedWindow, ...], faults: Iterable[PlannedFault]) -> tuple[Step, ...]:
    """All steps in time order; at the same instant old windows close before faults change and new windows open."""
    steps = [Step(w.start, "open_window", w.name) for w in windows]
    steps += [Step(w.end, "close_window", w.name) for w in windows]
    for fault in faults:
        steps.append(Step(max(0.0, fault.inject_at - ARM_LEAD_S), "arm", fault.name))
        steps.append(Step(fault.inject_at, "inject", fault.name))
        steps.append(Step(_last_look(fault), "look", fault.name))
        steps.append(Step(fault.revert_at, "revert", fault.name))
    return tuple(sorted(steps, key=lambda step: (step.at, _ORDER.index(step.action), step.subject)))


def _last_look(fault: PlannedFault) -> float:
    middle = (fault.inject_at + fault.revert_at) / 2
    return max(middle, fault.revert_at - LOOK_LEAD_S)
