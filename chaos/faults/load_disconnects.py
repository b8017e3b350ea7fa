"""People leave in the middle of their answer: they close the tab, and engines that nobody tells go on for nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips.strangers import OBSERVER, Crowd, StrangersFault, at_rate, seeded
from chaos.settings import setting
from chaos.units import Duration, Rate, Ratio


@dataclass(frozen=True)
class LoadDisconnects(StrangersFault):
    """Sends requests of strangers who leave."""

    kind: ClassVar[str] = "load_disconnects"
    summary: ClassVar[str] = "A share of strangers leaves before its long answer is whole."
    fidelity: ClassVar[str] = "HTTP: real requests through the users' edge"
    observer: ClassVar[str] = OBSERVER

    rate: Rate = at_rate()
    share: Ratio = setting("share of them that leaves", default=Ratio(0.5), least=0.01)
    after: Duration = setting("how long who leaves has waited", default=Duration(0.3), least=0.05, most=30)
    max_tokens: int = setting("longest answer that they ask for", default=256, least=1, most=4096)
    seed: int = seeded()

    def crowds(self) -> Sequence[Crowd]:
        """Some stay, some leave."""
        return tuple(
            crowd
            for crowd in (
                Crowd(float(self.rate * self.share), timeout_s=float(self.after), max_tokens=self.max_tokens),
                Crowd(float(self.rate * (1 - self.share)), max_tokens=self.max_tokens),
            )
            if crowd.rate_per_s > 0
        )
