"""A stack in virtual time, event by event: arrivals, one line, one server, clients that give up and come back.

    arrival ─► cache? ─► breaker? ─► line (at most Q) ─► server ─► in time? answered
       ▲                    │refused        │full                    │too late, or never
       └──── resend, while attempts and budget last ◄────────────────┘

Work takes its place in the line in the order in which it was sent. Whoever waits is served in that order, also those
whose client has left; times are exact, nothing is cut into steps. Some three microseconds an event.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from chaos.tipping.system import Breaker, Budget, Cache, System, Trigger

Floats = NDArray[np.float64]

ABANDONED, GOOD, REFUSED = 0, 1, 2
"""How an attempt ends: nobody answered in time; answered in time; refused at the door."""


@dataclass(slots=True)
class Attempt:
    """One send. `started_s` is inf for work that nobody began, `end_s` when its client heard or stopped waiting."""

    request: int
    number: int
    sent_s: float
    key: int
    ending: int = ABANDONED
    started_s: float = math.inf
    end_s: float = math.inf


@dataclass(frozen=True)
class Trace:
    """All that happened. `states` are (time, state) of the breaker, `looks` (time, hit) of the cache."""

    due_s: Floats
    attempts: list[Attempt]
    trigger: tuple[float, float]
    end_s: float
    looks: list[tuple[float, bool]]
    states: list[tuple[float, int]]


def play(system: System, trigger: Trigger, seed: int, *, before_s: float, after_s: float) -> Trace:
    """Run `before_s` undisturbed, the trigger, and `after_s` more of the same load; then until every client is gone."""
    begin, end = before_s, before_s + trigger.length_s
    dice = np.random.default_rng(seed)
    due = _arrivals(system, trigger, dice, (begin, end, end + after_s))
    run = _Run(system, trigger, _Work(system, trigger, dice, begin, end), dice, begin)
    run.carry_out(due)
    return Trace(due, run.attempts, (begin, end), end + after_s, run.cache.looks, run.breaker.states)


def _arrivals(system: System, trigger: Trigger, dice: np.random.Generator, ends: tuple[float, float, float]) -> Floats:
    """Due times: a Poisson process, or evenly spaced; another rate while the load is the trigger."""
    factor = trigger.factor if trigger.kind == "load" else 1.0
    begin, end, last = ends
    stretches = ((0.0, begin, 1.0), (begin, end, factor), (end, last, 1.0))
    return np.concatenate([_stretch(dice, system, *stretch) for stretch in stretches])


def _stretch(dice: np.random.Generator, system: System, start: float, end: float, factor: float) -> Floats:
    rate, length = system.rate_per_s * factor, end - start
    if system.even:
        return start + np.arange(math.ceil(rate * length - 1e-9)) / rate if rate else np.empty(0)
    return np.sort(start + length * dice.random(dice.poisson(rate * length)))


class _Work:
    """How long work takes: the server's speed changes with the trigger, so an end is found by using up its work."""

    def __init__(self, system: System, trigger: Trigger, dice: np.random.Generator, begin: float, end: float) -> None:
        self._mean = system.slots / system.capacity_per_s
        self._even = system.even
        self._dice = dice
        self._draws: list[float] = []
        self._begin, self._end = begin, end
        self._left = trigger.factor if trigger.kind == "capacity" else 1.0

    def draw(self) -> float:
        """Seconds of one slot at full speed."""
        if self._even:
            return self._mean
        if not self._draws:
            self._draws = self._dice.exponential(self._mean, 4096).tolist()
        return self._draws.pop()

    def end_of(self, start: float, work: float) -> float:
        """When work that begins at `start` is done."""
        if start >= self._end or start + work <= self._begin:
            return start + work
        if start < self._begin:
            work -= self._begin - start
            start = self._begin
        done = (self._end - start) * self._left
        return start + work / self._left if work < done else self._end + work - done


@dataclass
class _Kept:
    """The cache; without one nobody ever looks."""

    cache: Cache | None
    kept: set[int] = field(default_factory=set)
    looks: list[tuple[float, bool]] = field(default_factory=list)

    def has(self, now: float, key: int) -> bool:
        """Whether the answer is there; asking is remembered."""
        found = key in self.kept
        self.looks.append((now, found))
        return found


class _Guard:
    """The breaker: `states` has every change, 0 closed, 1 half-open, 2 open. None never refuses."""

    def __init__(self, breaker: Breaker | None) -> None:
        self._breaker = breaker or Breaker()
        self.states: list[tuple[float, int]] = []
        self._state, self._since = 0, 0.0
        self._recent: deque[bool] = deque(maxlen=self._breaker.calls)
        self._asked, self._passed = 0, 0

    def lets_through(self, now: float) -> bool:
        """Whether a call may be made now."""
        if self._state == 2 and now - self._since >= self._breaker.open_s:
            self._become(now, 1)
        if self._state == 1:
            self._asked += 1
            return self._asked <= self._breaker.probes
        return self._state == 0

    def heard(self, now: float, took_s: float) -> None:
        """A call ended after `took_s`; inf for one that failed."""
        failed = took_s > self._breaker.slow_s or took_s == math.inf
        if self._state == 1:
            self._passed += not failed
            if failed or self._passed >= self._breaker.probes:
                self._become(now, 2 if failed else 0)
        elif self._state == 0:
            self._recent.append(failed)
            enough = self._breaker.fails * self._breaker.calls
            if len(self._recent) == self._breaker.calls and sum(self._recent) >= enough:
                self._become(now, 2)

    def _become(self, now: float, state: int) -> None:
        self._state, self._since, self._asked, self._passed = state, now, 0, 0
        self._recent.clear()
        self.states.append((now, state))


class _Run:
    """The state of one run; `carry_out` plays it to its end."""

    def __init__(
        self, system: System, trigger: Trigger, work: _Work, dice: np.random.Generator, trigger_s: float
    ) -> None:
        self._system, self._work, self._dice = system, work, dice
        self._flush_s = trigger_s if trigger.kind == "flush" else math.inf
        self.attempts: list[Attempt] = []
        self.cache, self.breaker = _Kept(system.cache), _Guard(system.breaker)
        self._watched = system.breaker is not None
        self._line: deque[Attempt] = deque()
        self._free = [0.0] * system.slots
        self._patience: deque[Attempt] = deque()
        self._agenda: list[tuple[float, int, Attempt]] = []
        self._turns = count()
        self._bucket = _Bucket(system.budget)
        if system.cache is not None:
            self.cache.kept.update(range(system.cache.keys))

    def carry_out(self, due: Floats) -> None:
        """Every event in order of time: an arrival, an answer or a resend, a client whose patience ends."""
        timeout, patience, agenda = self._system.timeout_s, self._patience, self._agenda
        arrivals = iter(zip(due.tolist(), self._keys(len(due)), strict=True))
        next_due, key = next(arrivals, (math.inf, -1))
        request = 0
        while True:
            gives_up = patience[0].sent_s + timeout if patience else math.inf
            planned = agenda[0][0] if agenda else math.inf
            now = min(next_due, gives_up, planned)
            if now == math.inf:
                return
            if self._line and self._free[0] <= now:
                self._serve(now)
            if agenda and agenda[0][0] <= now:  # work that was begun just now may have ended before
                self._follow(heapq.heappop(agenda))
            elif gives_up == now:
                self._expire(patience.popleft(), now)
                while patience and patience[0].ending == GOOD:  # who was answered waits for nothing
                    patience.popleft()
            else:
                self._bucket.earn()
                self._send(Attempt(request, 1, now, key))
                next_due, key = next(arrivals, (math.inf, -1))
                request += 1

    def _keys(self, requests: int) -> list[int]:
        """Which kept answer each request is for; -1 for one that no cache holds."""
        cache = self._system.cache
        if cache is None:
            return [-1] * requests
        wanted = self._dice.integers(0, cache.keys, requests)
        wanted[self._dice.random(requests) >= cache.asked] = -1
        return [int(key) for key in wanted]

    def _follow(self, entry: tuple[float, int, Attempt]) -> None:
        now, _, attempt = entry
        if attempt.ending == GOOD:
            self._answered(attempt, now)
        else:
            self._resend(attempt, now)

    def _send(self, attempt: Attempt) -> None:
        now = attempt.sent_s
        self.attempts.append(attempt)
        if now >= self._flush_s:
            self.cache.kept.clear()
            self._flush_s = math.inf
        if attempt.key >= 0 and self.cache.has(now, attempt.key):
            attempt.ending, attempt.started_s, attempt.end_s = GOOD, now, now
        elif (self._watched and not self.breaker.lets_through(now)) or len(self._line) >= self._system.queue:
            attempt.ending, attempt.end_s = REFUSED, now
            self._again(attempt, now)
        else:
            self._line.append(attempt)
            self._patience.append(attempt)
            self._serve(now)

    def _serve(self, now: float) -> None:
        """Begin all work whose turn comes until `now`."""
        line, free, system = self._line, self._free, self._system
        while line and free[0] <= now:
            attempt = line.popleft()
            start = max(free[0], attempt.sent_s)
            deadline = attempt.sent_s + system.timeout_s
            if system.cancels and start >= deadline:
                continue
            work = self._work.draw()
            if system.crowding is not None and len(line) >= system.crowding.line:
                work /= system.crowding.keeps
            end = self._work.end_of(start, work)
            attempt.started_s = start
            heapq.heapreplace(free, min(end, deadline) if system.cancels else end)
            if end <= deadline:
                attempt.ending, attempt.end_s = GOOD, end
                if self._watched or attempt.key >= 0:
                    heapq.heappush(self._agenda, (end, next(self._turns), attempt))

    def _answered(self, attempt: Attempt, now: float) -> None:
        if attempt.key >= 0:
            self.cache.kept.add(attempt.key)
        if self._watched:
            self.breaker.heard(now, now - attempt.sent_s)

    def _expire(self, attempt: Attempt, now: float) -> None:
        """The client's patience ends; for most the answer has come long before."""
        if attempt.ending == ABANDONED:
            attempt.end_s = now
            if self._watched:
                self.breaker.heard(now, math.inf)
            self._again(attempt, now)

    def _again(self, attempt: Attempt, now: float) -> None:
        if attempt.number < self._system.attempts:
            heapq.heappush(self._agenda, (now + self._system.backoff_s, next(self._turns), attempt))

    def _resend(self, attempt: Attempt, now: float) -> None:
        if self._bucket.spend():
            self._send(Attempt(attempt.request, attempt.number + 1, now, attempt.key))


class _Bucket:
    """The retry budget; full at first."""

    def __init__(self, budget: Budget | None) -> None:
        self._ratio, self._burst = (0.0, math.inf) if budget is None else (budget.ratio, budget.burst)
        self._held = self._burst

    def earn(self) -> None:
        """A first try was sent."""
        self._held = min(self._burst, self._held + self._ratio)

    def spend(self) -> bool:
        """Take one resend, if there is one."""
        if self._held < 1:
            return False
        self._held -= 1
        return True
