"""Does the text flow? Pauses between tokens; a stream that broke off is a pause that never ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.latency import QuantileName, estimate_pauses, longest_pauses, pauses
from chaos.verdict.naming import requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View, decided


@dataclass(frozen=True)
class Itl:
    """See `summary`."""

    name: ClassVar[str] = "itl"
    summary: ClassVar[str] = "pause between tokens of one answer; a stream that broke off counts as infinitely slow"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = True

    quantile: QuantileName = setting("which quantile", default="p99")
    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Quantile over all pauses. The interval counts streams, not pauses: the pauses of one stream rise and fall
        together. It names the streams with the longest.
        """
        samples = view.evidence.samples
        rows = view.requests(self.load) & decided(samples) & (samples.first_token_s == samples.first_token_s)
        found = estimate_pauses(pauses(samples, rows), self.quantile, view.bound, int(rows.sum()))
        return replace(found, records=requests(samples, rows, worst=longest_pauses(samples)))
