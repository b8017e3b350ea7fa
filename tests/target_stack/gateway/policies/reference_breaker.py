"""What a breaker must do, derived from the whole list of what was asked of it.

`mismatch(seed)` plays one random sequence to the real breaker, writes down what was asked and answered, and then walks
that list: nothing is summed up on the way, every rule looks back at the events that it speaks of.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from target_stack.gateway.policies.breaker import Breaker, Permit, State
from target_stack.gateway.policies.settings import BreakerSettings

SLOW_S = 1.0
EVENTS = 30
RESULTS = ("good", "slow", "failure", "late")
NEVER = (-1, -1)


@dataclass(frozen=True)
class Event:
    """Something asked of the breaker. `permit` is the number of the acquire that it belongs to."""

    at: float
    what: str
    permit: int


@dataclass(frozen=True)
class Era:
    """A time between two changes of state. Events before `first` belong to earlier ones."""

    state: State
    number: int
    first: int
    until: float = 0.0


class Walk:
    """The answers that are due after each event: the state, and whether an acquire gets its permit."""

    def __init__(self, rules: BreakerSettings, events: list[Event], factors: list[float]) -> None:
        self.rules, self.events, self.factors = rules, events, factors
        self.era = Era("closed", 0, 0)
        self.granted: dict[int, tuple[int, int]] = {}
        self.opened = 0

    def answers(self) -> list[tuple[State, bool]]:
        due = []
        for place, event in enumerate(self.events):
            if event.what != "cancel":
                self._lapse(place)
            if event.what == "acquire":
                self._grant(place)
            elif event.what in RESULTS:
                self._judge(place)
            due.append((self.era.state, event.what == "acquire" and event.permit in self.granted))
        return due

    def _lapse(self, place: int) -> None:
        now = self.events[place].at
        if self.era.state == "open" and now >= self.era.until:
            self._turn("half_open", place, place)
        lost = [p for p in self._out(place) if now - self.events[self.granted[p][1]].at > self.rules.permit_lease_s]
        if self.era.state == "half_open" and lost:
            self._turn("open", place, place)

    def _grant(self, place: int) -> None:
        room = {"closed": EVENTS, "half_open": self.rules.half_open_permits, "open": 0}[self.era.state]
        if len(self._out(place)) < room:
            self.granted[self.events[place].permit] = (self.era.number, place)

    def _judge(self, place: int) -> None:
        results = self._results(place)
        if not results or results[-1] is not self.events[place]:
            return
        if self.era.state == "half_open":
            if results[-1].what != "good":
                self._turn("open", place, place + 1)
            elif len(results) >= self.rules.half_open_successes:
                self._turn("closed", place, place + 1)
        elif self.era.state == "closed" and self._is_too_much(results):
            self._turn("open", place, place + 1)

    def _is_too_much(self, results: list[Event]) -> bool:
        row = [one.what in ("failure", "late") for one in results][-self.rules.consecutive_failures :]
        if len(row) == self.rules.consecutive_failures and all(row):
            return True
        recent = results[-self.rules.window_calls :]
        if self.rules.kind == "time":
            recent = [one for one in results if results[-1].at - one.at <= self.rules.window_s]
        failures = sum(one.what in ("failure", "late") for one in recent) / len(recent)
        slow = sum(one.what == "slow" for one in recent) / len(recent)
        too_many = failures >= self.rules.failure_ratio or slow >= self.rules.slow_ratio
        return len(recent) >= self.rules.minimum_calls and too_many

    def _turn(self, state: State, place: int, first: int) -> None:
        until = 0.0
        if state == "open":
            until = self.events[place].at + self.rules.open_s * self.factors[self.opened]
            self.opened += 1
        self.era = Era(state, self.era.number + 1, first, until)

    def _out(self, place: int) -> list[int]:
        back = {event.permit for event in self.events[:place] if event.what not in ("acquire", "late")}
        return [permit for permit, (era, _) in self.granted.items() if era == self.era.number and permit not in back]

    def _results(self, place: int) -> list[Event]:
        return [
            event
            for event in self.events[self.era.first : place + 1]
            if event.what == "late"
            or (event.what in RESULTS and self.granted.get(event.permit, NEVER)[0] == self.era.number)
        ]


def rules_of(dice: random.Random) -> BreakerSettings:
    minimum = dice.choice((1, 3, 5))
    return BreakerSettings(
        kind=dice.choice(("time", "count")),
        window_s=dice.choice((2.0, 10.0)),
        window_calls=minimum + dice.choice((0, 2, 9)),
        minimum_calls=minimum,
        failure_ratio=dice.choice((0.3, 0.5, 1.0)),
        consecutive_failures=dice.choice((2, 3, 99)),
        slow_ratio=dice.choice((0.4, 0.75)),
        open_s=dice.choice((1.0, 5.0)),
        open_jitter=dice.choice((0.0, 0.2)),
        half_open_permits=dice.choice((1, 2, 4)),
        half_open_successes=dice.choice((1, 2, 3)),
        permit_lease_s=dice.choice((4.0, 8.0)),
    )


def played(rules: BreakerSettings, seed: int, dice: random.Random) -> tuple[list[Event], list[tuple[State, bool]]]:
    """A random sequence of calls of the real breaker, and what it answered to each."""
    real = Breaker(rules, slow_call_s=SLOW_S, rng=random.Random(seed))
    events: list[Event] = []
    answers: list[tuple[State, bool]] = []
    out: dict[int, Permit] = {}
    now = 1000.0
    for number in range(EVENTS):
        now += dice.choice((0.0, 0.0, 0.125, 1.0, 3.0))
        what = dice.choices(("acquire", "good", "slow", "failure", "cancel", "late"), (40, 25, 8, 20, 6, 3))[0]
        if what not in ("acquire", "late") and not out:
            what = "acquire"
        key = number if what in ("acquire", "late") else dice.choice(sorted(out))
        if what == "acquire":
            permit = real.acquire(now)
            out |= {} if permit is None else {key: permit}
        elif what == "late":
            real.late_failure(now)
        else:
            _settle(out.pop(key), now, what)
        events.append(Event(now, what, key))
        answers.append((real.state, what == "acquire" and key in out))
    return events, answers


def _settle(permit: Permit, now: float, what: str) -> None:
    if what == "cancel":
        permit.cancel()
    elif what == "failure":
        permit.failure(now)
    else:
        permit.success(now, SLOW_S * 2 if what == "slow" else SLOW_S / 2)


def mismatch(seed: int) -> str | None:
    """One sequence, played by the real breaker and walked by the reference: where they part, or None."""
    dice = random.Random(seed)
    rules = rules_of(dice)
    events, answers = played(rules, seed, dice)
    jitter, spread = random.Random(seed), rules.open_jitter
    factors = [jitter.uniform(1 - spread, 1 + spread) for _ in range(EVENTS)]
    for number, (due, seen) in enumerate(zip(Walk(rules, events, factors).answers(), answers, strict=True)):
        if due != seen:
            return f"seed {seed}, event {number} {events[number]}: {seen}, by the rules {due}"
    return None
