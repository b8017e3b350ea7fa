"""Many requests arrive in the same moment, again and again: a timer that everybody has set to the full minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips.strangers import OBSERVER, Crowd, StrangersFault, seeded
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class LoadBurst(StrangersFault):
    """Sends bunches of requests."""

    kind: ClassVar[str] = "load_burst"
    summary: ClassVar[str] = "Strangers send requests in bunches, all of a bunch in the same moment."
    fidelity: ClassVar[str] = "HTTP: real requests through the users' edge"
    observer: ClassVar[str] = OBSERVER

    size: int = setting("requests in a bunch", default=50, least=5, most=500)
    every: Duration = setting("time from bunch to bunch", default=Duration(1), least=0.1, most=1)
    max_tokens: int = setting("longest answer that they ask for", default=24, least=1, most=4096)
    seed: int = seeded()

    def crowds(self) -> Sequence[Crowd]:
        """As many as a bunch has, in each stretch."""
        return (Crowd(self.size / float(self.every), every_s=float(self.every), max_tokens=self.max_tokens),)
