"""Crowds that are too large for the bundled engines, in virtual time: what users got for it.

`goodput` counts whole, undegraded answers whose first token came within `SLO_S`, of requests that arrived in the
window, as a share of what the engines could have made in it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from modelled_engine import Speed
from simulator import Request, Simulation

BUNDLED = Speed(slots=16, prefill_s_per_token=0.0002, step_s=0.008, step_s_per_sequence=0.0004)
"""An engine of the bundled stack, by its cost model in stack.yaml."""
TOKENS = 32
SLO_S = 1.5


@dataclass(frozen=True)
class Figures:
    """Shares from 0 to 1, times in seconds; a quantile of nothing is 0."""

    goodput: float
    served: float
    shed: float
    ttft_s_p50: float
    ttft_s_p99: float
    shed_s_p99: float

    def __str__(self) -> str:
        return (
            f"goodput {self.goodput:6.1%}  served {self.served:6.1%}  shed {self.shed:5.1%}  "
            f"ttft p50 {1000 * self.ttft_s_p50:4.0f} p99 {1000 * self.ttft_s_p99:5.0f} ms  "
            f"shed p99 {1000 * self.shed_s_p99:5.0f} ms"
        )


def figures(requests: Sequence[Request], possible: float) -> Figures:
    """Of requests that arrived in a window in which `possible` answers could have been made."""
    waits = [one.first_token_s for one in requests if one.outcome == "good" and one.first_token_s is not None]
    sheds = [one.refused_s for one in requests if one.outcome == "shed" and one.refused_s is not None]
    served = sum(one.outcome in ("good", "degraded") for one in requests)
    return Figures(
        goodput=sum(wait <= SLO_S for wait in waits) / possible,
        served=served / len(requests),
        shed=len(sheds) / len(requests),
        ttft_s_p50=quantile(waits, 0.5),
        ttft_s_p99=quantile(waits, 0.99),
        shed_s_p99=quantile(sheds, 0.99),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share does not exceed; 0 of none."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def steady(policies: Mapping[str, Any], times: float, *, seconds: float = 30.0, seed: int = 1) -> Figures:
    """So many times the capacity, from the first second on; the first five are not looked at."""
    simulation = Simulation(policies, speed=BUNDLED, seed=seed)
    capacity = simulation.capacity_per_s(max_tokens=TOKENS)
    simulation.load(times * capacity, seconds, max_tokens=TOKENS)
    simulation.run(seconds)
    return figures(simulation.of(from_s=5), capacity * (seconds - 5))


def half_lost(policies: Mapping[str, Any], *, seed: int = 1) -> tuple[Figures, Figures]:
    """At 70 % of capacity one of two engines is lost: the first five seconds, and the rest, against what is left."""
    simulation = Simulation(policies, speed=BUNDLED, seed=seed)
    capacity = simulation.capacity_per_s(max_tokens=TOKENS)
    simulation.load(0.7 * capacity, 40, max_tokens=TOKENS)
    simulation.at(10, simulation.engines[0].kill)
    simulation.run(40)
    first, rest = simulation.of(from_s=10, until_s=15), simulation.of(from_s=15)
    return figures(first, capacity / 2 * 5), figures(rest, capacity / 2 * 25)


def slow_spell(policies: Mapping[str, Any], *, slower: float = 4.0, seed: int = 1) -> tuple[Figures, Figures]:
    """At 70 % of capacity both engines compute four times slower for ten seconds: meanwhile, and afterwards."""
    simulation = Simulation(policies, speed=BUNDLED, seed=seed)
    capacity = simulation.capacity_per_s(max_tokens=TOKENS)
    simulation.load(0.7 * capacity, 40, max_tokens=TOKENS)

    def slow_down(by: float) -> None:
        for engine in simulation.engines:
            engine.slow = by

    simulation.at(10, lambda: slow_down(slower))
    simulation.at(20, lambda: slow_down(1.0))
    simulation.run(40)
    spell, after = simulation.of(from_s=10, until_s=20), simulation.of(from_s=20)
    return figures(spell, capacity / slower * 10), figures(after, capacity * 20)


@dataclass(frozen=True)
class Both:
    """The same seconds as users and as batch work saw them."""

    users: Figures
    batch: Figures


def batch_surge(policies: Mapping[str, Any], *, times: float = 12.0, users: float = 0.35, seed: int = 1) -> Both:
    """Users at `users` of capacity and batch work at 15 % of it, which becomes twelve times as much for ten seconds."""
    simulation = Simulation(policies, speed=BUNDLED, seed=seed)
    capacity = simulation.capacity_per_s(max_tokens=TOKENS)
    start, end, rate = 5.0, 15.0, 0.15 * capacity
    simulation.load(users * capacity, end + 1, max_tokens=TOKENS, name="users")
    simulation.load(rate, end + 1, max_tokens=TOKENS, name="batch", priority="batch")
    simulation.load((times - 1) * rate, end, from_s=start, max_tokens=TOKENS, name="surge", priority="batch")
    simulation.run(end + 1)
    batch = simulation.of("batch", start, end) + simulation.of("surge", start, end)
    possible = capacity * (end - start)
    return Both(figures(simulation.of("users", start, end), possible), figures(batch, possible))


def batch_beside(policies: Mapping[str, Any], *, users: float = 2.5, seconds: float = 15.0, seed: int = 1) -> Both:
    """Users alone at two and a half times the capacity, batch work at a tenth of it."""
    simulation = Simulation(policies, speed=BUNDLED, seed=seed)
    capacity = simulation.capacity_per_s(max_tokens=TOKENS)
    simulation.load(users * capacity, seconds, max_tokens=TOKENS, name="users")
    simulation.load(0.1 * capacity, seconds, max_tokens=TOKENS, name="batch", priority="batch")
    simulation.run(seconds)
    window, batch = simulation.of("users", from_s=5), simulation.of("batch", from_s=5)
    return Both(figures(window, capacity * (seconds - 5)), figures(batch, capacity * (seconds - 5)))
