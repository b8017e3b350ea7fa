"""The stubs of one direction of one connection in a row, edited while bytes are in flight.

    feed ─► inbox │ stage: stub, schedule │ ─► inbox │ stage │ ─► ... ─► tail ─► the receiving socket

Pure: every call carries the time, nothing here waits. A chunk moves on when its schedule says so and the next inbox has
room; so a slow stub, or a receiver that does not read, presses back through the row to the sending socket. Whatever is
edited, no byte is lost or reordered.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable

from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics.stub import GRAIN, End, Item, Stub

Fit = Callable[[Toxic], tuple[random.Random, Stub]]
"""The dice and the state machine of a toxic on one link."""
_PASS = Stub()
_MANY = 128


class Stage:
    """One toxic on one link: is it active here, what waits for it, what has it promised."""

    __slots__ = ("active", "dice", "ended", "free_at", "inbox", "outbox", "stalled", "stub", "touched", "toxic")

    def __init__(self, toxic: Toxic, fit: Fit) -> None:
        self.toxic = toxic
        self.dice, self.stub = fit(toxic)
        self.active = False
        self.touched = False
        self.ended = False
        self.stalled = False  # something was due, but the next inbox was full
        self.free_at = -math.inf
        self.inbox: deque[tuple[float, Item]] = deque()
        self.outbox: deque[tuple[float, Item]] = deque()

    @property
    def room(self) -> bool:
        """Whether another item may be put into the inbox."""
        return not self.ended and len(self.inbox) < self.toxic.attributes.buffer

    @property
    def due(self) -> float | None:
        """When something may happen next by itself; None if never, or if a full neighbour must move first."""
        if self.ended or self.stalled or not self.outbox or self.outbox[0][0] == math.inf:
            return None
        return self.outbox[0][0]

    def start(self, now: float) -> None:
        """Throw the dice anew: active on this link or not, until the next change."""
        if self.outbox and self.stub.binding:
            return
        self.active = self.stub.per_request or self.dice.random() < self.toxic.toxicity
        if self.active and not self.outbox:
            self.outbox.extend(self.stub.start(now))

    def interrupt(self, now: float) -> None:
        """Let go of what is held, at once. An end is asked for again, a close that was only threatened is dropped."""
        if self.stub.binding and self.outbox:
            return
        held, self.outbox = self.outbox, deque()
        for _, item in held:
            if isinstance(item, bytes):
                self.outbox.append((now, item))
            elif not (self.active and self.stub.preempts):
                self.inbox.appendleft((now, item))
        self.free_at = now

    def step(self, now: float) -> Item | None:
        """The next item that may leave by `now`, or None. Empty bytes never leave."""
        while not self.ended:
            if self.inbox and (not self.outbox or self._preempted()):
                self._take()
            elif self.outbox and self.outbox[0][0] <= now:
                if self.stalled:
                    self._shift(now - self.outbox[0][0])
                due, item = self.outbox.popleft()
                self.free_at = due
                if item:
                    self.ended = isinstance(item, End)
                    return item
            else:
                break
        self.stalled = False
        return None

    def stall(self, now: float) -> None:
        """There was no room for the next item. Is it due, or is this stage not yet at fault?"""
        self.stalled = bool(self.outbox) and self.outbox[0][0] <= now

    def _preempted(self) -> bool:
        return self.active and self.stub.preempts and self.inbox[0][0] < self.outbox[0][0]

    def _take(self) -> None:
        stamp, item = self.inbox.popleft()
        now = max(stamp, self.free_at)
        stub = self.stub if self.active else _PASS
        if self.active and not self.stub.per_request:
            self._count(item)
        if stub.preempts:
            self.outbox.clear()
        self.outbox.extend(stub.chunk(now, stamp, item) if isinstance(item, bytes) else stub.end(now, item))

    def _shift(self, late_s: float) -> None:
        """A full neighbour held us up: what was promised for later is later by as much, so pauses and rates hold."""
        self.outbox = deque((due + late_s, item) for due, item in self.outbox)
        self.stalled = False

    def _count(self, item: Item) -> None:
        hits = self.toxic.hits
        hits.connections += not self.touched
        self.touched = True
        if isinstance(item, bytes):
            hits.chunks += 1
            hits.bytes += len(item)
        else:
            hits.ends += 1


class Chain:
    """The row of stages. `deliver` gives an item to the receiver and tells whether it takes another one now."""

    __slots__ = ("_deliver", "_fit", "blocked", "ended", "stages", "tail")

    def __init__(self, now: float, toxics: list[Toxic], fit: Fit, deliver: Callable[[Item], bool]) -> None:
        self._fit = fit
        self._deliver = deliver
        self.blocked = False
        self.ended = False
        self.tail: deque[Item] = deque()
        self.stages = [Stage(toxic, fit) for toxic in toxics]
        for stage in self.stages:
            stage.start(now)

    @property
    def plain(self) -> bool:
        """Nothing stands between sender and receiver."""
        return not self.stages and not self.tail and not self.ended

    @property
    def room(self) -> bool:
        """Whether the sender may be read."""
        if self.ended:
            return False
        return self.stages[0].room if self.stages else not self.blocked

    @property
    def grain(self) -> int:
        """The most that may be fed at a time. With much on the way it is the least, which bounds what is held."""
        if not self.stages or len(self.stages[0].inbox) > _MANY:
            return GRAIN
        return min(stage.toxic.attributes.grain for stage in self.stages)

    @property
    def due(self) -> float | None:
        """When to call `advance` again if nothing else happens before; None if never."""
        if self.ended:
            return None
        soonest = None
        for stage in self.stages:
            due = stage.due
            if due is not None and (soonest is None or due < soonest):
                soonest = due
        return soonest

    def feed(self, now: float, item: Item) -> None:
        """An item from the sender, then `advance`."""
        if self.stages:
            self.stages[0].inbox.append((now, item))
        else:
            self.tail.append(item)
        self.advance(now)

    def resume(self, now: float) -> None:
        """The receiver takes more."""
        self.blocked = False
        self.advance(now)

    def advance(self, now: float) -> None:
        """Move everything that may move by `now`."""
        while self.tail and not self.blocked and not self.ended:
            self._hand_over(self.tail.popleft())
        for index in range(len(self.stages) - 1, -1, -1):
            self._run(now, index)

    def _run(self, now: float, index: int) -> None:
        """Move what one stage has ready, and through all after it, until there is no more or no room."""
        stage = self.stages[index]
        after = self.stages[index + 1] if index + 1 < len(self.stages) else None
        while not self.ended:
            if self.blocked or self.tail if after is None else not after.room:
                stage.stall(now)
                return
            item = stage.step(now)
            if item is None:
                return
            if after is None:
                self._hand_over(item)
            else:
                after.inbox.append((stage.free_at, item))
                self._run(now, index + 1)

    def _hand_over(self, item: Item) -> None:
        self.ended = isinstance(item, End)
        self.blocked = not self._deliver(item)

    def append(self, now: float, toxic: Toxic) -> None:
        """A toxic was added. The last stage is interrupted and throws its dice again, as in Toxiproxy."""
        if self.stages:
            self._disturb(now, self.stages[-1])
        stage = Stage(toxic, self._fit)
        if self.stages and self.stages[-1].ended:
            return
        self.stages.append(stage)
        stage.start(now)
        self.advance(now)

    def prepend(self, now: float, toxic: Toxic) -> None:
        """A toxic was added that stands before all others: it sees what comes from now on."""
        if self.ended:
            return
        stage = Stage(toxic, self._fit)
        self.stages.insert(0, stage)
        stage.start(now)

    def wake(self, now: float) -> None:
        """The other direction has news for a stage."""
        for stage in self.stages:
            if stage.active and not stage.ended:
                stage.outbox.extend(stage.stub.woken(now))
        self.advance(now)

    def update(self, now: float, toxic: Toxic) -> None:
        """A toxic was changed: what it holds leaves at once, what comes is treated by the new settings."""
        for stage in self.stages:
            if stage.toxic is toxic and not stage.ended:
                self._restart(now, stage)
        self.advance(now)

    def remove(self, now: float, toxic: Toxic, *, close_untouched: bool) -> None:
        """A toxic was removed: what waited for it moves on. `close_untouched`: see Attributes.closes_when_removed."""
        index = next((i for i, stage in enumerate(self.stages) if stage.toxic is toxic), None)
        if index is None or self.stages[index].ended:
            return
        stage = self.stages[index]
        if stage.stub.binding and stage.outbox and stage.active:
            return
        rest = stage.stub.leave()
        stage.interrupt(now)
        if rest is None:
            self.advance(now)
            return
        held: list[Item] = [*(item for _, item in stage.outbox), rest, *(item for _, item in stage.inbox)]
        if toxic.attributes.closes_when_removed and (stage.active or close_untouched):
            held = [End.CLOSE]
        del self.stages[index]
        if index < len(self.stages):
            self.stages[index].inbox.extend((now, item) for item in held if item)
        else:
            self.tail.extend(item for item in held if item)
        if index:
            self._disturb(now, self.stages[index - 1])
        self.advance(now)

    def _disturb(self, now: float, stage: Stage) -> None:
        """Its neighbour was changed. Kinds that Toxiproxy does not have are left in peace."""
        if not stage.stub.per_request:
            self._restart(now, stage)

    @staticmethod
    def _restart(now: float, stage: Stage) -> None:
        stage.interrupt(now)
        stage.start(now)
