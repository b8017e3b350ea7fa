"""Where does it tip? Bisection of a trigger's length, or of the load, in runs of the model; and arms with a loop cut.

Every run is judged as a real one is: evidence, course, diagnosis. Between a bound that recovers and one that stays down
the answer is known to a twentieth of itself after a dozen runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from chaos.tipping.evidence import view_of
from chaos.tipping.model import play
from chaos.tipping.predict import Clients, critical_load, tipping_length_of_cut_s, tipping_length_of_rise_s
from chaos.tipping.system import Loop, System, Trigger
from chaos.verdict.course import course_of
from chaos.verdict.metastable import Diagnosis, diagnose

MOST_RUNS = 30
_PRECISE = 0.02
_LONGEST_S = 300.0
_HIGHEST = 0.98
_WATCH_PATIENCES = 20
_WATCH_S = 40.0
_BEFORE_S = 15.0


@dataclass(frozen=True)
class Tip:
    """What was found. `point` lies between `safe` (recovers) and `tips` (stays down), None where nothing tips it;
    `predicted` is the closed form's answer, None where it has none for such a system.
    """

    point: float | None
    safe: float
    tips: float
    predicted: float | None
    runs: int


@dataclass(frozen=True)
class Arm:
    """The same run with one loop cut."""

    loop: Loop
    found: Diagnosis


def diagnosed(system: System, trigger: Trigger, seed: int, *, before_s: float, after_s: float) -> Diagnosis:
    """Play it and judge its evidence. Raises ValueError for a run too short to judge at all."""
    course = course_of(view_of(play(system, trigger, seed, before_s=before_s, after_s=after_s)))
    if isinstance(course, str):
        raise ValueError(course)  # noqa: TRY004  the course is missing, its type is how that is said
    return diagnose(course, system.capacity_per_s)


def stays_down(system: System, trigger: Trigger, seed: int) -> bool:
    """Whether the stack is down for good; watched for twenty patiences, longer while it cannot be told."""
    after_s = max(_WATCH_S, _WATCH_PATIENCES * system.timeout_s)
    for longer in (1, 4):
        found = diagnosed(system, trigger, seed, before_s=_before_s(system), after_s=longer * after_s)
        if found.state != "unknown":
            return found.state == "stuck"
    return True


def _before_s(system: System) -> float:
    """Long enough for a dozen slices of ten requests."""
    return max(_BEFORE_S, 120 / system.rate_per_s)


def tipping_length(system: System, trigger: Trigger, seed: int) -> Tip:
    """The shortest trigger of this kind that the stack does not come back from, in at most MOST_RUNS runs."""
    found = _bisected(lambda length: stays_down(system, replace(trigger, length_s=length), seed), trigger.length_s)
    return replace(found, predicted=predicted_length_s(system, trigger))


def tipping_load(system: System, trigger: Trigger, seed: int) -> Tip:
    """The lowest load, as a rate, from which the stack does not come back after this trigger."""
    cold = 1.0 if system.cache is None else 1 - system.cache.asked
    highest = _HIGHEST * system.capacity_per_s / cold

    def tips(rate: float) -> bool:
        return stays_down(replace(system, rate_per_s=rate), trigger, seed)

    found = _bisected(tips, min(system.rate_per_s, highest), highest)
    closed = critical_load(system.clients) * system.capacity_per_s
    return replace(found, predicted=None if _has_no_form(system, trigger) else closed)


def _bisected(tips: Callable[[float], bool], start: float, most: float = _LONGEST_S) -> Tip:
    """Double or halve from `start` until a bound on each side is known, then halve what is between."""
    safe, down, runs, at = 0.0, math.inf, 0, start
    while runs < MOST_RUNS and (math.isinf(down) or down - safe > _PRECISE * down):
        runs += 1
        if tips(at):
            down = at
        else:
            safe = at
            if safe >= most:
                return Tip(None, safe, math.inf, None, runs)
        at = min(2 * safe, most) if math.isinf(down) else (safe + down) / 2
    return Tip((safe + down) / 2, safe, down, None, runs)


def predicted_length_s(system: System, trigger: Trigger) -> float | None:
    """The closed form for this trigger; None where the form does not know what this system has."""
    if _has_no_form(system, trigger):
        return None
    form = tipping_length_of_cut_s if trigger.kind == "capacity" else tipping_length_of_rise_s
    return form(system.rate_per_s, system.capacity_per_s, trigger.factor, _in_line(system), system.queue)


def _in_line(system: System) -> Clients:
    """The closed forms know no time of service: what work itself takes is no patience for the line, and comes back in
    the time until the next resend.
    """
    served_s, clients = system.slots / system.capacity_per_s, system.clients
    waits_s = max(0.0, clients.timeout_s - served_s)
    return replace(clients, timeout_s=waits_s, backoff_s=clients.backoff_s + clients.timeout_s - waits_s)


def _has_no_form(system: System, trigger: Trigger) -> bool:
    return trigger.kind == "flush" or system.cancels or any((system.cache, system.crowding, system.breaker))


def by_control_arm(system: System, trigger: Trigger, seed: int, *, before_s: float, after_s: float) -> tuple[Arm, ...]:
    """The same seed and trigger once for each loop, cut; the first that recovers is the loop.

    A line of work that nobody waits for is part of every storm and ending it cures them all, so it is cut last.
    """
    return tuple(
        Arm(loop, diagnosed(system.without(loop), trigger, seed, before_s=before_s, after_s=after_s))
        for loop in system.loops()
    )
