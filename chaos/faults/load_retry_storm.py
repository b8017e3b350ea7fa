"""Clients that give up early and ask again at once: each slow answer becomes several requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips.strangers import OBSERVER, Crowd, StrangersFault, at_rate, seeded
from chaos.settings import setting
from chaos.units import Duration, Rate


@dataclass(frozen=True)
class LoadRetryStorm(StrangersFault):
    """Sends requests of impatient strangers."""

    kind: ClassVar[str] = "load_retry_storm"
    summary: ClassVar[str] = "Strangers leave after a short wait and send the same request again at once."
    fidelity: ClassVar[str] = "HTTP: real requests through the users' edge"
    observer: ClassVar[str] = OBSERVER

    rate: Rate = at_rate()
    timeout: Duration = setting("how long one waits before it asks again", default=Duration(0.5), least=0.05, most=30)
    retries: int = setting("how often one asks again", default=3, least=1, most=10)
    seed: int = seeded()

    def crowds(self) -> Sequence[Crowd]:
        """Who does not wait."""
        return (Crowd(float(self.rate), timeout_s=float(self.timeout), retries=self.retries),)
