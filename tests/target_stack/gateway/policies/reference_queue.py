"""What the admission queue must do, recomputed at every step from the whole history of a queue: slow, and with no state
but that history.

`mismatch(seed)` plays one random sequence of events against the real queue and says where the two part, or None.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import pairwise

from target_stack.gateway.policies.queue import AdmissionQueue, Priority, QueueSettings, Shed

EVENTS = 40


@dataclass(frozen=True)
class Came:
    at: float
    ticket: Hashable
    line: Priority
    until: float


@dataclass(frozen=True)
class Left:
    at: float
    ticket: Hashable
    started: bool


@dataclass(frozen=True)
class StartedAtOnce:
    at: float


@dataclass
class ReferenceQueue:
    """Answers as `AdmissionQueue` must."""

    rules: QueueSettings
    history: list[Came | Left | StartedAtOnce] = field(default_factory=list)

    def line(self, name: Priority, history: list[Came | Left | StartedAtOnce] | None = None) -> list[Came]:
        past = self.history if history is None else history
        left = {one.ticket for one in past if isinstance(one, Left)}
        return [one for one in past if isinstance(one, Came) and one.line == name and one.ticket not in left]

    def everybody(self) -> list[Came]:
        return self.line("interactive") + self.line("batch")

    def stands_since(self, name: Priority, now: float) -> float:
        """The last moment at which this line went from empty to not empty; now for an empty one."""
        since = now
        for length in range(len(self.history), 0, -1):
            if not self.line(name, self.history[:length]):
                break
            since = self.history[length - 1].at
        return since

    def interval_s(self, now: float, name: Priority) -> float:
        starts = [e for e in self.history if isinstance(e, StartedAtOnce) or (isinstance(e, Left) and e.started)]
        average: float | None = None
        for before, after in pairwise(starts):
            if isinstance(before, Left) and isinstance(after, Left):
                gap = after.at - before.at
                average = gap if average is None else average + 0.2 * (gap - average)
        latest = max([self.stands_since(name, now), *(start.at for start in starts)])
        silent_s = now - latest
        if average is None:
            return silent_s
        return average + 0.2 * max(0.0, silent_s - average)

    def expected_wait_s(self, now: float, name: Priority) -> float:
        if name == "batch":
            return len(self.everybody()) * self.interval_s(now, name)
        users = len(self.line("interactive"))
        kept = 1 - self.rules.batch_share if self.line("batch") else 1.0
        return users / kept * self.interval_s(now, name)

    def offer(self, now: float, ticket: Hashable, name: Priority, deadline: float) -> list[Shed]:
        name = "interactive" if self.rules.classes == "one" else name
        patience_s = self.rules.deadline_share * (deadline - now)
        longest_s = {"interactive": self.rules.wait_s, "batch": self.rules.batch_wait_s}[name]
        standing = now - self.stands_since("interactive", now) >= self.rules.backed_up_after_s
        door_s = self.rules.backed_up_wait_s if name == "interactive" and standing else longest_s
        if self.expected_wait_s(now, name) > min(door_s, patience_s):
            return [Shed(ticket, "wait_too_long")]
        made_room: list[Shed] = []
        if len(self.everybody()) == self.rules.capacity:
            if name == "batch" or not self.line("batch"):
                return [Shed(ticket, "queue_full")]
            made_room = [Shed(self.line("batch")[-1].ticket, "displaced")]
            self.history.append(Left(now, made_room[0].ticket, started=False))
        self.history.append(Came(now, ticket, name, now + min(longest_s, patience_s)))
        return made_room

    def take(self, now: float, *, batch: bool) -> Hashable | None:
        users, others = self.line("interactive"), self.line("batch") if batch else []
        both = bool(users and others)
        aged = both and now - others[0].at >= self.rules.batch_aging_s
        turn = aged and (self.users_since_batch() + 1) * self.rules.batch_share >= 1
        chosen = others if turn or not users else users
        if not chosen:
            return None
        self.history.append(Left(now, chosen[0].ticket, started=True))
        return chosen[0].ticket

    def users_since_batch(self) -> int:
        line_of = {one.ticket: one.line for one in self.history if isinstance(one, Came)}
        started = [line_of[one.ticket] for one in self.history if isinstance(one, Left) and one.started]
        return next((n for n, line in enumerate(reversed(started)) if line == "batch"), len(started))

    def expire(self, now: float) -> list[Shed]:
        over = [one for one in self.everybody() if now >= one.until]
        self.history += [Left(now, one.ticket, started=False) for one in over]
        return [Shed(one.ticket, "waited_too_long") for one in over]

    def remove(self, now: float, ticket: Hashable) -> bool:
        there = ticket in [one.ticket for one in self.everybody()]
        if there:
            self.history.append(Left(now, ticket, started=False))
        return there

    def clear(self, now: float) -> list[Hashable]:
        everybody = [one.ticket for one in self.everybody()]
        self.history += [Left(now, ticket, started=False) for ticket in everybody]
        return everybody


def rules_of(dice: random.Random) -> QueueSettings:
    """Settings in which every rule has something to say within a few events. Times are sums of powers of two, so that
    they can be equal.
    """
    return QueueSettings(
        classes=dice.choice(("two", "two", "two", "one")),
        capacity=dice.choice((1, 2, 4, 8)),
        wait_s=dice.choice((0.5, 1.0)),
        backed_up_wait_s=dice.choice((0.0625, 0.25)),
        backed_up_after_s=dice.choice((0.125, 0.25)),
        deadline_share=dice.choice((0.5, 1.0)),
        batch_wait_s=dice.choice((0.5, 3.0)),
        batch_aging_s=dice.choice((0.0, 0.25, 3600.0)),
        batch_share=dice.choice((0.0, 1 / 6, 0.5)),
    )


def mismatch(seed: int) -> str | None:
    """One sequence of events, played to both."""
    dice = random.Random(seed)
    rules = rules_of(dice)
    real, wanted, now = AdmissionQueue(rules), ReferenceQueue(rules), 1000.0
    for number in range(EVENTS):
        now += dice.choice((0.0, 0.0, 1 / 64, 1 / 16, 1 / 8, 1 / 2))
        what, seen, due = _play(real, wanted, now, number, dice)
        if seen != due:
            return f"seed {seed}, event {number}, {what}: {seen!r}, by the rules {due!r}"
    return None


def _play(
    real: AdmissionQueue, wanted: ReferenceQueue, now: float, number: int, dice: random.Random
) -> tuple[str, object, object]:
    what = dice.choices(
        ("interactive", "batch", "take", "at once", "expire", "remove", "clear"), (30, 20, 30, 4, 10, 5, 1)
    )[0]
    if what in ("interactive", "batch"):
        arguments = (now, number, what, now + dice.choice((0.125, 1.0, 20.0)))
        found: tuple[object, object] = real.offer(*arguments), wanted.offer(*arguments)
    elif what == "take":
        batch = dice.random() < 0.8
        found = real.take(now, batch=batch), wanted.take(now, batch=batch)
    elif what == "at once":
        real.started_at_once(now)
        wanted.history.append(StartedAtOnce(now))
        found = None, None
    elif what == "remove":
        ticket = dice.randrange(number + 1)
        found = real.remove(ticket), wanted.remove(now, ticket)
    else:
        found = (real.expire(now), wanted.expire(now)) if what == "expire" else (real.clear(), wanted.clear(now))
    everybody = wanted.everybody()
    due = (len(everybody), min((one.until for one in everybody), default=None))
    again_s = max(1.0, len(everybody) * wanted.interval_s(now, "interactive"))
    return what, (found[0], len(real), real.next_expiry(), real.retry_after_s(now)), (found[1], *due, again_s)
