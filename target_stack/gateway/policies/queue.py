"""The admission queue: bounded, two classes, and it would rather refuse now than answer too late.

* A request is refused at the door when the queue is full, or when the wait that it must expect is longer than its
  limit. Expected wait is the number ahead times the time between two starts, so the line never holds more than
  service rate times limit: the bound below which retries alone cannot keep a service down (theory.md, section 1.5).
* Once the line of users has not been empty for a while it is standing, not absorbing a burst; the expected wait that is
  taken in then shrinks to almost nothing (the idea of CoDel, at the door). Those who are already in line keep the limit
  they came in with, so refusals are quick and waits are not in vain.
* Waiting may use up only a share of what the deadline leaves: the answer needs the rest.
* Interactive goes before batch. Batch that has waited for the aging time gets a fixed share of the starts, so it is
  never starved and never takes more than that share from waiting interactive work. A full queue displaces its
  youngest batch entry for an interactive one.

First come, first served within a class: the door keeps the line so short that newest-first would change little.

The queue holds opaque tickets; whoever drives it starts the work and tells shed callers. Every ticket that is offered
leaves exactly once: taken, shed, or removed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

Priority = Literal["interactive", "batch"]
ShedReason = Literal["queue_full", "wait_too_long", "waited_too_long", "displaced"]
_SMOOTHING = 0.2


@dataclass(frozen=True)
class QueueSettings:
    """`classes: one` makes no difference between users and batch work. Waits in seconds; the two shares are of starts
    and of the time to the deadline.
    """

    classes: Literal["two", "one"] = "two"
    capacity: int = 64
    wait_s: float = 1.0  # a user waits no longer
    backed_up_wait_s: float = 0.1  # a user who must expect to wait longer is refused while the line stands
    backed_up_after_s: float = 0.5
    deadline_share: float = 0.5
    batch_wait_s: float = 5.0
    batch_aging_s: float = 0.5
    batch_share: float = 1 / 6  # of starts that aged batch work gets while users wait

    def __post_init__(self) -> None:
        """Raises ValueError for shares that leave nothing to the other side."""
        if self.batch_share >= 1 or not 0 < self.deadline_share <= 1:
            raise ValueError("policies.queue: batch_share must be below 1, deadline_share above 0 and at most 1")


@dataclass(frozen=True)
class Shed:
    """A ticket that is refused, and why."""

    ticket: Hashable
    reason: ShedReason


@dataclass(frozen=True)
class _Waiting:
    since: float
    expires_at: float


class AdmissionQueue:
    """See the module. Times are monotonic seconds."""

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings
        self._lines: dict[Priority, OrderedDict[Hashable, _Waiting]] = {
            "interactive": OrderedDict(),
            "batch": OrderedDict(),
        }
        self._line_since: dict[Priority, float] = {}  # only of lines that are not empty
        self._last_start: float | None = None
        self._saturated = False  # nobody has started without waiting since the last start
        self._start_interval_s: float | None = None
        self._starts_since_batch = 0

    def __len__(self) -> int:
        return sum(len(line) for line in self._lines.values())

    def waiting(self, priority: Priority) -> int:
        """Tickets that stand in the line which a request of this class would join."""
        return len(self._lines[self._class_of(priority)])

    def offer(self, now: float, ticket: Hashable, priority: Priority, deadline: float) -> list[Shed]:
        """Put a ticket in line. Returns who is refused for it: nobody, the ticket itself, or a batch ticket that
        makes room.
        """
        priority = self._class_of(priority)
        patience_s = self._settings.deadline_share * (deadline - now)
        if self._expected_wait_s(now, priority) > min(self._door_limit_s(now, priority), patience_s):
            return [Shed(ticket, "wait_too_long")]
        refused: list[Shed] = []
        if len(self) >= self._settings.capacity:
            if priority == "batch" or not self._lines["batch"]:
                return [Shed(ticket, "queue_full")]
            refused.append(Shed(self._leave("batch", last=True), "displaced"))
        self._line_since.setdefault(priority, now)
        self._lines[priority][ticket] = _Waiting(now, now + min(self._wait_limit_s(priority), patience_s))
        return refused

    def take(self, now: float, *, batch: bool = True) -> Hashable | None:
        """The ticket whose work starts now, or None when nobody may; `batch` says whether batch work may. Call
        `expire` first.
        """
        priority = self._next_class(now, batch=batch)
        if priority is None:
            return None
        self._starts_since_batch = 0 if priority == "batch" else self._starts_since_batch + 1
        self._measure_start(now)
        return self._leave(priority)

    def started_at_once(self, now: float) -> None:
        """A request started without standing in line: there was room, so the time to this start says nothing about
        how fast a line moves.
        """
        self._last_start, self._saturated = now, False

    def expire(self, now: float) -> list[Shed]:
        """Take out every ticket that waited past its limit."""
        gone = [
            (priority, ticket)
            for priority, line in self._lines.items()
            for ticket, entry in line.items()
            if now >= entry.expires_at
        ]
        for priority, ticket in gone:
            self._drop(priority, ticket)
        return [Shed(ticket, "waited_too_long") for _, ticket in gone]

    def next_expiry(self) -> float | None:
        """When `expire` should next be called; None when nobody waits."""
        return min((entry.expires_at for line in self._lines.values() for entry in line.values()), default=None)

    def remove(self, ticket: Hashable) -> bool:
        """The caller of this ticket went away. False when it was not waiting."""
        for priority, line in self._lines.items():
            if ticket in line:
                self._drop(priority, ticket)
                return True
        return False

    def clear(self) -> list[Hashable]:
        """Take everybody out, oldest first within each class: nothing of what waits will be started."""
        return [self._leave(priority) for priority, line in self._lines.items() for _ in range(len(line))]

    def retry_after_s(self, now: float) -> float:
        """When a refused caller may come again with some hope: the time the present line needs, at least one second."""
        return max(1.0, len(self) * self._interval_s(now, "interactive"))

    def _class_of(self, priority: Priority) -> Priority:
        return priority if self._settings.classes == "two" else "interactive"

    def _wait_limit_s(self, priority: Priority) -> float:
        return self._settings.batch_wait_s if priority == "batch" else self._settings.wait_s

    def _door_limit_s(self, now: float, priority: Priority) -> float:
        stood_s = now - self._line_since.get("interactive", now)
        if priority == "interactive" and stood_s >= self._settings.backed_up_after_s:
            return self._settings.backed_up_wait_s
        return self._wait_limit_s(priority)

    def _expected_wait_s(self, now: float, priority: Priority) -> float:
        if priority == "batch":
            ahead: float = len(self)
        else:
            given_away = self._settings.batch_share if self._lines["batch"] else 0.0
            ahead = len(self._lines["interactive"]) / (1 - given_away)
        return ahead * self._interval_s(now, priority)

    def _interval_s(self, now: float, priority: Priority) -> float:
        """Time between two starts. The gap that is still open counts too once it is longer than what is known: a line
        that has stopped must not look fast.
        """
        since = self._line_since.get(priority, now)
        open_s = now - (since if self._last_start is None else max(since, self._last_start))
        known = self._start_interval_s
        return open_s if known is None else known + _SMOOTHING * max(0.0, open_s - known)

    def _next_class(self, now: float, *, batch: bool) -> Priority | None:
        users, others = self._lines["interactive"], self._lines["batch"] if batch else {}
        if not users:
            return "batch" if others else None
        if others:
            aged = now - next(iter(others.values())).since >= self._settings.batch_aging_s
            if aged and (self._starts_since_batch + 1) * self._settings.batch_share >= 1:
                return "batch"
        return "interactive"

    def _measure_start(self, now: float) -> None:
        # Two starts tell the service rate only when every slot was taken all the time between them.
        if self._saturated and self._last_start is not None:
            sample, before = now - self._last_start, self._start_interval_s
            self._start_interval_s = sample if before is None else before + _SMOOTHING * (sample - before)
        self._last_start, self._saturated = now, True

    def _leave(self, priority: Priority, *, last: bool = False) -> Hashable:
        line = self._lines[priority]
        ticket = next(reversed(line)) if last else next(iter(line))
        self._drop(priority, ticket)
        return ticket

    def _drop(self, priority: Priority, ticket: Hashable) -> None:
        del self._lines[priority][ticket]
        if not self._lines[priority]:
            del self._line_since[priority]


class ShedWatch:
    """Turns single sheds into an episode: started with the first, stopped after a quiet time."""

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._last_shed: float | None = None

    def shed(self, now: float) -> bool:
        """A request was shed; True when this starts an episode."""
        starts = self._last_shed is None
        self._last_shed = now
        return starts

    def stopped(self, now: float) -> bool:
        """True once, when the episode is over."""
        if self._last_shed is None or now - self._last_shed < self._quiet_s:
            return False
        self._last_shed = None
        return True
