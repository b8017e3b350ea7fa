"""Whose turn it is, and who waits for whom in a circle. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Waiting:
    """An open task that nobody works on, as the queue sees it. Times are Unix seconds; high priorities come first."""

    id: str
    priority: int
    created: float
    deadline: float
    not_before: float
    waits_for: tuple[str, ...]
    wait_until: float | None

    def due_at(self, ended: Collection[str]) -> float:
        """From when on it can go on: at once, after its pause, or when what it waits for has ended or its bound has."""
        if set(self.waits_for) <= set(ended):
            return min(self.not_before, self.deadline)
        return min(self.deadline if self.wait_until is None else self.wait_until, self.deadline)

    def rank(self, now: float, aging_s: float) -> tuple[float, float, str]:
        """Smallest first. A long wait counts as priority, so nobody is overtaken for ever."""
        return (-(self.priority + (now - self.created) / aging_s), self.created, self.id)


def choose(queue: Iterable[Waiting], ended: Collection[str], now: float, aging_s: float) -> Waiting | None:
    """The task to go on with. `ended` are the names of what is waited for and has ended."""
    due = [one for one in queue if one.due_at(ended) <= now]
    return min(due, key=lambda one: one.rank(now, aging_s), default=None)


def next_due(queue: Iterable[Waiting], ended: Collection[str]) -> float | None:
    """When the next task is due by time alone."""
    return min((one.due_at(ended) for one in queue), default=None)


def circle(start: Iterable[str], waits_of: Callable[[str], Iterable[str]], home: Collection[str]) -> tuple[str, ...]:
    """The names on a way from `start` that leads back `home`, along who waits for whom; empty when there is none."""
    ways: list[tuple[str, ...]] = [(name,) for name in start]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        if way[-1] in home:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [(*way, further) for further in waits_of(way[-1])]
    return ()
