"""Do answers still have their length? Longer ones cost more and are read less; no error count shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.outcome import Estimate
from chaos.verdict.statistics import Floats, bootstrap_ratio
from chaos.verdict.view import ANSWERED, View, among
from chaos.verdict.windows import Window

_FEWEST_ANSWERS = 20


@dataclass(frozen=True)
class OutputLength:
    """See `summary`."""

    name: ClassVar[str] = "output_length"
    summary: ClassVar[str] = "mean tokens of a whole answer, relative to the baseline"
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = True

    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Ratio of means with a bootstrap interval over seconds, whose requests share what the stack does then."""
        baseline = view.times.windows.get("baseline")
        if baseline is None or view.window is None:
            return Estimate(None, missing="the run has no baseline to compare with")
        now, then = self._lengths(view, view.window), self._lengths(view, baseline)
        fewest = int(min(now[1].sum(), then[1].sum()))
        if fewest < _FEWEST_ANSWERS or not then[0].sum():
            return Estimate(None, missing=f"only {fewest} whole answers in the window or in the baseline")
        means = now[0].sum() / now[1].sum(), then[0].sum() / then[1].sum()
        detail = f"{means[0]:.1f} tokens an answer, {means[1]:.1f} in the baseline"
        more = "a longer window or a higher rate: more answers to compare"
        return Estimate(
            means[0] / means[1], bootstrap_ratio(now, then), int(now[1].sum()), detail=detail, to_settle=more
        )

    def _lengths(self, view: View, window: Window) -> tuple[Floats, Floats]:
        """Tokens and whole answers of each second that has any."""
        samples = view.evidence.samples
        rows = view.requests(self.load, window) & among(samples.outcome, ANSWERED)
        if not rows.any():
            return np.zeros(1), np.zeros(1)
        seconds = np.floor(samples.intended_s[rows]).astype(np.int64)
        seconds -= seconds.min()
        tokens = np.asarray(np.bincount(seconds, samples.tokens[rows]), dtype=np.float64)
        answers = np.bincount(seconds).astype(np.float64)
        return tokens[answers > 0], answers[answers > 0]
