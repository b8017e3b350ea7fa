"""Stacks that stay down and stacks that come back, drawn with dice, at least 10 % from the boundary that theory gives.

Each has the loop that keeps it down, or none, by construction; so a judge who sees only the evidence can be scored.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaos.tipping.predict import critical_backlog, critical_load, recovery_s, tipping_length_of_cut_s
from chaos.tipping.system import Breaker, Budget, Cache, Crowding, System, Trigger

AWAY = 0.1
"""How far from the boundary, as a share of it."""

HIGHEST = 0.9
BEFORE_S = 30.0
_SHORTEST_S = 60.0
_LONGEST_S = 400.0


@dataclass(frozen=True)
class Case:
    """A system, what happens to it, how long it is watched afterwards, and the loop that keeps it down."""

    system: System
    trigger: Trigger
    after_s: float
    loop: str | None


def stuck(seed: int) -> Case:
    """One that stays down."""
    dice = random.Random(f"stuck/{seed}")
    return list(_STUCK.values())[seed % len(_STUCK)](dice)


def safe(seed: int) -> Case:
    """One that comes back, watched for three times as long as it can take."""
    dice = random.Random(f"safe/{seed}")
    return list(_SAFE.values())[seed % len(_SAFE)](dice)


def slow(seed: int) -> Case:
    """A safe one that needs long, watched for a part of what it needs."""
    dice = random.Random(f"slow/{seed}")
    budget = Budget(dice.choice([0.1, 0.2])) if dice.random() < 0.5 else None
    system, trigger = _mild(dice, attempts=4 if budget else 1, budget=budget, near=1.0)
    needs = _needs_s(system, trigger)
    return Case(system, trigger, max(20.0, needs * dice.uniform(0.3, 0.7)), None)


def _base(dice: random.Random) -> tuple[float, float]:
    return dice.choice([50.0, 70.0, 100.0]), dice.choice([0.7, 1.0, 2.0])


def _cut(dice: random.Random, length_s: float) -> Trigger:
    return Trigger("capacity", length_s, dice.choice([0.0, 0.1, 0.2]))


def _retries(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    attempts = dice.choice([2, 3, 4, 5])
    load = dice.uniform((1 + AWAY) / attempts, HIGHEST)
    queue = math.inf if dice.random() < 0.5 else round(capacity * timeout * dice.uniform(3, 8))
    system = System(load * capacity, capacity, timeout, attempts, queue=queue)
    return Case(system, _tips(system, dice), 150.0, "retries")


def _budgeted(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    budget = Budget(dice.choice([0.5, 1.0]))
    load = dice.uniform((1 + AWAY) / (1 + budget.ratio), HIGHEST)
    system = System(load * capacity, capacity, timeout, 5, budget=budget)
    return Case(system, _tips(system, dice), 120.0, "retries")


def _tips(system: System, dice: random.Random) -> Trigger:
    """A trigger that is more than long enough."""
    cut = _cut(dice, 0.0)
    shortest = tipping_length_of_cut_s(system.rate_per_s, system.capacity_per_s, cut.factor, system.clients)
    return Trigger("capacity", 2 * shortest + 2 * system.timeout_s, cut.factor)


def _crowded(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    keeps = dice.uniform(0.4, 0.7)
    load = dice.uniform(keeps * (1 + AWAY), HIGHEST)
    line = round(capacity * timeout * dice.uniform(1.5, 3))
    system = System(load * capacity, capacity, timeout, crowding=Crowding(line, keeps))
    return Case(system, _cut(dice, 2 * line / (load * capacity * 0.7) + 5), 90.0, "queue")


def _cold(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    asked = dice.uniform(0.5, 0.8)
    warm = dice.uniform(0.5, 0.8)
    load = max(1.2, warm / (1 - asked))
    cache = Cache(asked, keys=int(40 * capacity * timeout))
    system = System(load * capacity, capacity, timeout, dice.choice([1, 2]), cache=cache)
    return Case(system, Trigger("flush", 0.0), 90.0, "cache")


def _strict(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    load = dice.uniform(0.3, 0.45)
    slow_s = 2.0 / (capacity * (1 - load))  # one answer in seven is slower than that
    breaker = Breaker(fails=0.5, calls=100, open_s=dice.choice([2.0, 5.0]), probes=400, slow_s=slow_s)
    system = System(load * capacity, capacity, max(timeout, 1.0), breaker=breaker)
    return Case(system, _cut(dice, 200 / system.rate_per_s + 2 * timeout), 480.0, "breaker")


def _mild(
    dice: random.Random, *, attempts: int, budget: Budget | None, near: float | None = None
) -> tuple[System, Trigger]:
    capacity, timeout = _base(dice)
    system = System(1.0, capacity, timeout, attempts, budget=budget)
    highest = min(HIGHEST, critical_load(system.clients) * (1 - AWAY))
    load = highest * (near or dice.uniform(0.4, 1.0))
    system = System(load * capacity, capacity, timeout, attempts, budget=budget)
    return system, _cut(dice, dice.uniform(5, 15))


def _needs_s(system: System, trigger: Trigger) -> float:
    """Formula 3, with all that was offered in the trigger in line."""
    offered = system.rate_per_s * system.clients.amplification
    backlog = min(system.queue, trigger.length_s * (offered - trigger.factor * system.capacity_per_s))
    return recovery_s(max(0.0, backlog), system.capacity_per_s, system.timeout_s, offered)


def _watched(system: System, trigger: Trigger) -> Case:
    needs = _needs_s(system, trigger)
    return Case(system, trigger, min(_LONGEST_S, max(_SHORTEST_S, 10 * system.timeout_s, 3 * needs)), None)


def _safe_retries(dice: random.Random) -> Case:
    return _watched(*_mild(dice, attempts=dice.choice([1, 2, 3, 4]), budget=None))


def _safe_budget(dice: random.Random) -> Case:
    return _watched(*_mild(dice, attempts=4, budget=Budget(dice.choice([0.1, 0.2, 0.5]))))


def _short_line(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    system = System(1.0, capacity, timeout, dice.choice([2, 3, 4]))
    queue = math.floor(critical_backlog(capacity, system.clients) * (1 - AWAY))
    system = System(dice.uniform(0.4, HIGHEST) * capacity, capacity, timeout, system.attempts, queue=queue)
    return Case(system, _cut(dice, dice.uniform(5, 20)), _SHORTEST_S, None)


def _cancelling(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    load = dice.uniform(0.4, HIGHEST * (1 - AWAY))
    system = System(load * capacity, capacity, timeout, dice.choice([2, 3, 4]), cancels=True)
    return Case(system, _cut(dice, dice.uniform(5, 20)), 120.0, None)


def _roomy(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    keeps = dice.uniform(0.5, 0.8)
    load = keeps * (1 - AWAY) * dice.uniform(0.6, 1.0)
    system = System(load * capacity, capacity, timeout, crowding=Crowding(round(2 * capacity * timeout), keeps))
    trigger = _cut(dice, dice.uniform(5, 10))
    backlog = load * capacity * trigger.length_s
    return Case(system, trigger, max(_SHORTEST_S, 3 * backlog / (capacity * (keeps - load))), None)


def _refilled(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    cache = Cache(dice.uniform(0.3, 0.7), keys=int(10 * capacity))
    system = System(dice.uniform(0.5, HIGHEST) * capacity, capacity, timeout, 1, cache=cache)
    return Case(system, Trigger("flush", 0.0), _SHORTEST_S, None)


def _closing(dice: random.Random) -> Case:
    capacity, timeout = _base(dice)
    system = System(dice.uniform(0.4, 0.8) * capacity, capacity, timeout, 3, breaker=Breaker())
    return Case(system, _cut(dice, dice.uniform(5, 15)), _SHORTEST_S, None)


_STUCK: Mapping[str, Callable[[random.Random], Case]] = {
    "retries": _retries,
    "budgeted": _budgeted,
    "crowded": _crowded,
    "cold": _cold,
    "strict": _strict,
}
_SAFE: Mapping[str, Callable[[random.Random], Case]] = {
    "retries": _safe_retries,
    "budgeted": _safe_budget,
    "short line": _short_line,
    "cancelling": _cancelling,
    "roomy": _roomy,
    "refilled": _refilled,
    "closing": _closing,
}
