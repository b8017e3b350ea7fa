"""What bad links do to packets. Each is asked `meet(now, packet)` and answers what becomes of which packet, and when.

Nothing here waits or reads a clock. A packet that is answered twice follows the answer that is due first.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from chaos.saboteurs.netfilter.messages import Packet


class Answer(NamedTuple):
    """At time `at` this packet passes (with other bytes, or followed by a copy) or is dropped."""

    at: float
    packet: Packet
    passes: bool = True
    data: bytes | None = None
    twice: bool = False


class Link(Protocol):
    """One kind of bad link. Both ways are alike and know nothing of each other."""

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """A packet comes at `now`, in monotonic seconds."""
        ...


@dataclass
class Slow:
    """Every packet comes later: by `delay_s`, give or take up to `jitter_s`, evenly. None overtakes another."""

    dice: random.Random
    delay_s: float
    jitter_s: float
    _last: dict[int, float] = field(default_factory=dict)

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """Due after all that came before it."""
        drawn = now + self.delay_s + self.dice.uniform(-self.jitter_s, self.jitter_s)
        due = max(drawn, self._last.get(packet.hook, 0.0))
        self._last[packet.hook] = due
        return (Answer(due, packet),)


@dataclass
class Lossy:
    """A share of the packets is lost, `burst` in a row on average (Gilbert's model: all is lost while the link is bad;
    a good link turns bad with chance p, a bad one good with chance r = 1 / burst, and p / (p + r) is the share). With
    a burst of 1 each packet is lost or not on its own.
    """

    dice: random.Random
    share: float
    burst: int
    _bad: defaultdict[int, bool] = field(default_factory=lambda: defaultdict(bool))

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """The link changes its state with every packet."""
        if self.burst == 1:
            lost = self.dice.random() < self.share
        else:
            was = self._bad[packet.hook]
            lost = self.dice.random() < (1 - 1 / self.burst if was else self._turns_bad())
        self._bad[packet.hook] = lost
        return (Answer(now, packet, passes=not lost),)

    def _turns_bad(self) -> float:
        return self.share / (1 - self.share) / self.burst


@dataclass
class Doubling:
    """A share of the packets comes twice."""

    dice: random.Random
    share: float

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """The copy follows at once."""
        return (Answer(now, packet, twice=self.dice.random() < self.share),)


@dataclass
class Garbling:
    """A share of the packets comes with one bit of what TCP carries turned over, and the old checksum."""

    dice: random.Random
    share: float

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """An empty segment has its checksum garbled."""
        changed = self._changed(packet.data) if self.dice.random() < self.share else None
        return (Answer(now, packet, data=changed),)

    def _changed(self, data: bytes) -> bytes:
        tcp = 40 if data[0] >> 4 == 6 else (data[0] & 15) * 4
        carried = tcp + (data[tcp + 12] >> 4) * 4
        first, last = (carried, len(data)) if carried < len(data) else (tcp + 16, tcp + 18)
        at = self.dice.randrange(first, last)
        return data[:at] + bytes([data[at] ^ 1 << self.dice.randrange(8)]) + data[at + 1 :]


@dataclass
class Shuffling:
    """A share of the packets is overtaken by `by` later ones of its connection, if they come within `at_most_s`."""

    dice: random.Random
    share: float
    by: int
    at_most_s: float
    _held: defaultdict[tuple[int, bytes], list[tuple[float, int, Packet]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """One that is held back itself has not passed those before it."""
        way = (packet.hook, packet.flow)
        if self.dice.random() < self.share:
            self._held[way].append((now + self.at_most_s, self.by, packet))
            return (Answer(now + self.at_most_s, packet),)
        waiting = [(until, left - 1, held) for until, left, held in self._held.pop(way, ()) if until > now]
        if still := [each for each in waiting if each[1] > 0]:
            self._held[way] = still
        return (Answer(now, packet), *(Answer(now, held) for _, left, held in waiting if left == 0))


@dataclass
class Narrow:
    """A line that carries `rate` bytes a second, before which at most `queue` bytes wait; what does not fit is lost."""

    rate: float
    queue: int
    _free_at: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """It arrives when its last byte has left the line. One packet always fits."""
        begins = max(now, self._free_at[packet.hook])
        waiting = (begins - now) * self.rate
        if waiting and waiting + packet.size > self.queue:
            return (Answer(now, packet, passes=False),)
        self._free_at[packet.hook] = begins + packet.size / self.rate
        return (Answer(self._free_at[packet.hook], packet),)


@dataclass
class Clear:
    """A good link: the price of taking packets from the kernel and giving them back."""

    def meet(self, now: float, packet: Packet) -> Sequence[Answer]:
        """On it goes."""
        return (Answer(now, packet),)


_MAKERS: Mapping[str, Callable[[random.Random, Mapping[str, Any]], Link]] = {
    "slow": lambda dice, given: Slow(dice, **given),
    "lossy": lambda dice, given: Lossy(dice, **given),
    "doubling": lambda dice, given: Doubling(dice, **given),
    "garbling": lambda dice, given: Garbling(dice, **given),
    "shuffling": lambda dice, given: Shuffling(dice, **given),
    "narrow": lambda _, given: Narrow(**given),
    "clear": lambda _, given: Clear(**given),
}
NEEDS_ALL_BYTES = frozenset({"doubling", "garbling"})
"""Links that must see more of a packet than its head."""


def link_of(name: str, given: Mapping[str, Any], seed: int) -> Link:
    """The link of that name with its settings. Raises KeyError and TypeError."""
    return _MAKERS[name](random.Random(seed), given)
