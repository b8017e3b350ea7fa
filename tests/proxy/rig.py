"""Virtual time for a chain: feed items at chosen times and see what reaches the receiver when."""

from __future__ import annotations

import random
from typing import Any

from chaos.proxy.chain import Chain
from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics import TOXICS
from chaos.proxy.toxics.stub import End, Item, Stub

KINDS = {kind.kind: kind for kind in TOXICS}


def toxic(kind: str, toxicity: float = 1.0, name: str = "", **attributes: int | str) -> Toxic:
    """A downstream toxic; the attributes as in the API."""
    make: Any = KINDS[kind]
    return Toxic(name or f"{kind}_downstream", "downstream", make(**attributes), toxicity)


class Rig:
    """One link whose receiver takes everything unless `full` is set. `got` is [(time, item)]."""

    def __init__(self, *toxics: Toxic, seed: int = 1) -> None:
        self.now = 0.0
        self.full = False
        self.got: list[tuple[float, Item]] = []
        self._seed = seed
        self.chain = Chain(0.0, list(toxics), self._fit, self._deliver)

    def _fit(self, toxic_: Toxic) -> tuple[random.Random, Stub]:
        dice = random.Random(f"{self._seed}/{toxic_.name}")
        return dice, toxic_.attributes.stub(dice)

    def _deliver(self, item: Item) -> bool:
        self.got.append((round(self.now, 9), item))
        return not self.full

    def run_until(self, when: float) -> None:
        """Jump from event to event."""
        while (due := self.chain.due) is not None and due <= when:
            self.now = max(self.now, due)
            self.chain.advance(self.now)
        self.now = when
        self.chain.advance(when)

    def feed(self, when: float, item: Item) -> None:
        """At this time the sender has sent this."""
        self.run_until(when)
        self.chain.feed(when, item)

    def data(self) -> bytes:
        """Everything that has arrived."""
        return b"".join(item for _, item in self.got if isinstance(item, bytes))

    def ends(self) -> list[tuple[float, End]]:
        """How it ended."""
        return [(when, item) for when, item in self.got if isinstance(item, End)]
