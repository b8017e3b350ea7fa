"""The admission queue: bounded, two classes, and it would rather refuse now than answer too late.

* A request is refused at the door when the queue is full, or when the expected wait would pass its deadline or its
  wait limit.
* Once the queue has not been empty for a while it is standing, not absorbing a burst; the wait limit then shrinks
  (the idea of CoDel).
* Interactive goes before batch. Batch that has waited for the aging time gets a fixed share of the starts, so it is
  never starved and never takes more than that share from waiting interactive work. A full queue displaces its
  youngest batch entry for an interactive one.

The queue holds opaque tickets; whoever drives it starts the work and tells shed callers. Every ticket that is offered
leaves exactly once: taken, shed, or removed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from target_stack.gateway.policies.settings import QueueSettings

Priority = Literal["interactive", "batch"]
ShedReason = Literal["queue_full", "wait_too_long", "waited_too_long", "displaced"]
_SMOOTHING = 0.2


@dataclass(frozen=True)
class Shed:
    """A ticket that is refused, and why."""

    ticket: Hashable
    reason: ShedReason


@dataclass(frozen=True)
class _Waiting:
    since: float
    deadline: float


class AdmissionQueue:
    """See the module. Times are monotonic seconds."""

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings
        self._classes: dict[Priority, OrderedDict[Hashable, _Waiting]] = {
            "interactive": OrderedDict(),
            "batch": OrderedDict(),
        }
        self._standing_since: float | None = None
        self._last_start: float | None = None
        self._start_interval_s: float | None = None
        self._starts_since_batch = 0

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._classes.values())

    def offer(self, now: float, ticket: Hashable, priority: Priority, deadline: float) -> list[Shed]:
        """Put a ticket in line. Returns who is refused for it: nobody, the ticket itself, or a batch ticket that
        makes room.
        """
        if self._expected_wait_s(priority) > min(self._wait_limit_s(now, priority), deadline - now):
            return [Shed(ticket, "wait_too_long")]
        refused: list[Shed] = []
        if len(self) >= self._settings.capacity:
            batch = self._classes["batch"]
            if priority == "batch" or not batch:
                return [Shed(ticket, "queue_full")]
            refused.append(Shed(batch.popitem(last=True)[0], "displaced"))
        if not len(self):
            self._standing_since = now
            self._last_start = None
        self._classes[priority][ticket] = _Waiting(now, deadline)
        return refused

    def take(self, now: float) -> Hashable | None:
        """The ticket whose work starts now, or None when nobody waits. Call `expire` first."""
        priority = self._next_class(now)
        if priority is None:
            return None
        ticket, _ = self._classes[priority].popitem(last=False)
        self._starts_since_batch = 0 if priority == "batch" else self._starts_since_batch + 1
        self._measure_start(now)
        self._note_empty()
        return ticket

    def expire(self, now: float) -> list[Shed]:
        """Take out every ticket that waited past its limit or its deadline."""
        gone = [
            (waiting, ticket)
            for priority, waiting in self._classes.items()
            for ticket, entry in waiting.items()
            if now >= self._expires_at(now, priority, entry)
        ]
        for waiting, ticket in gone:
            del waiting[ticket]
        self._note_empty()
        return [Shed(ticket, "waited_too_long") for _, ticket in gone]

    def next_expiry(self, now: float) -> float | None:
        """When `expire` should next be called, given today's wait limit; None when nobody waits."""
        times = [self._expires_at(now, p, e) for p, waiting in self._classes.items() for e in waiting.values()]
        return min(times, default=None)

    def remove(self, ticket: Hashable) -> bool:
        """The caller of this ticket went away. False when it was not waiting."""
        found = any(waiting.pop(ticket, None) for waiting in self._classes.values())
        self._note_empty()
        return found

    def retry_after_s(self) -> float:
        """When a refused caller may come again with some hope: the time the present line needs, at least one second."""
        return max(1.0, len(self) * (self._start_interval_s or 0.0))

    def _expires_at(self, now: float, priority: Priority, entry: _Waiting) -> float:
        return min(entry.deadline, entry.since + self._wait_limit_s(now, priority))

    def _wait_limit_s(self, now: float, priority: Priority) -> float:
        if priority == "batch":
            return self._settings.batch_wait_s
        standing = self._standing_since is not None and now - self._standing_since >= self._settings.backed_up_after_s
        return self._settings.backed_up_wait_s if standing else self._settings.wait_s

    def _expected_wait_s(self, priority: Priority) -> float:
        ahead = len(self) if priority == "batch" else len(self._classes["interactive"])
        return ahead * (self._start_interval_s or 0.0)

    def _next_class(self, now: float) -> Priority | None:
        interactive, batch = self._classes["interactive"], self._classes["batch"]
        if not interactive:
            return "batch" if batch else None
        if batch:
            aged = now - next(iter(batch.values())).since >= self._settings.batch_aging_s
            if aged and (self._starts_since_batch + 1) * self._settings.batch_share >= 1:
                return "batch"
        return "interactive"

    def _measure_start(self, now: float) -> None:
        # Only starts within one standing line tell the service rate; the first one after an empty queue does not.
        if self._last_start is not None:
            sample, before = now - self._last_start, self._start_interval_s
            self._start_interval_s = sample if before is None else before + _SMOOTHING * (sample - before)
        self._last_start = now

    def _note_empty(self) -> None:
        if not len(self):
            self._standing_since = None


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
