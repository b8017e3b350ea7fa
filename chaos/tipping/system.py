"""What the model needs to know of a stack, its clients and a trigger: numbers only, each with its unit.

Everything is as plain as the closed forms of `chaos.tipping.predict` want it: one line in front of one server, which
goes on with the work of clients that have left unless it `cancels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from chaos.tipping.predict import Clients

Loop = Literal["retries", "queue", "cache", "breaker"]
"""What can keep a stack down when its trigger is gone."""


@dataclass(frozen=True)
class Budget:
    """A bucket of resends: each first try puts `ratio` in, a resend takes 1, and it never holds more than `burst`."""

    ratio: float
    burst: float = 10.0


@dataclass(frozen=True)
class Crowding:
    """A long line costs capacity (preempted and recomputed work, paging): beyond `line` waiting, `keeps` is left."""

    line: int
    keeps: float


@dataclass(frozen=True)
class Cache:
    """Of all requests a share `asked` is for one of `keys` answers that are kept once they were served to somebody who
    was still there.
    """

    asked: float
    keys: int = 200


@dataclass(frozen=True)
class Breaker:
    """Opens when a share `fails` of the last `calls` failed, refuses for `open_s`, then lets `probes` through and
    closes when all of them succeed. An answer slower than `slow_s` counts as a failure.
    """

    fails: float = 0.5
    calls: int = 20
    open_s: float = 5.0
    probes: int = 3
    slow_s: float = math.inf


@dataclass(frozen=True)
class Trigger:
    """`capacity`: only `factor` of it is left; `load`: `factor` times the rate; `flush`: the cache is empty at once."""

    kind: Literal["capacity", "load", "flush"]
    length_s: float
    factor: float = 0.0


@dataclass(frozen=True)
class System:
    """One stack under one open-loop load. `even`: arrivals and work without dice, as in the closed forms."""

    rate_per_s: float
    capacity_per_s: float
    timeout_s: float
    attempts: int = 1
    backoff_s: float = 0.0
    queue: float = math.inf
    slots: int = 1
    cancels: bool = False
    budget: Budget | None = None
    crowding: Crowding | None = None
    cache: Cache | None = None
    breaker: Breaker | None = None
    even: bool = False

    @property
    def clients(self) -> Clients:
        """The clients, for the closed forms."""
        ratio = None if self.budget is None else self.budget.ratio
        return Clients(self.timeout_s, self.attempts, self.backoff_s, ratio)

    def loops(self) -> tuple[Loop, ...]:
        """Loops that this system has at all."""
        present: dict[Loop, bool] = {
            "retries": self.attempts > 1,
            "cache": self.cache is not None,
            "breaker": self.breaker is not None,
            "queue": not self.cancels and self.queue > self.capacity_per_s * self.timeout_s,
        }
        return tuple(loop for loop, there in present.items() if there)

    def without(self, loop: Loop) -> System:
        """The same system with one loop cut, for a control arm. A cache that cannot be lost is warm for ever: what it
        answers never reaches the server. A queue is cut by ending the work of clients that have left.
        """
        if loop == "retries":
            return replace(self, attempts=1)
        if loop == "queue":
            return replace(self, cancels=True)
        if loop == "breaker":
            return replace(self, breaker=None)
        warm = 1.0 if self.cache is None else 1 - self.cache.asked
        return replace(self, cache=None, rate_per_s=self.rate_per_s * warm)
