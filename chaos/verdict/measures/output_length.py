"""Do answers still have their length? Longer ones cost more and are read less; no error count shows them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.differences import compare_means
from chaos.verdict.naming import requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import ANSWERED, Control, View, among

_FEWEST_ANSWERS = 20


@dataclass(frozen=True)
class OutputLength:
    """See `summary`."""

    name: ClassVar[str] = "output_length"
    summary: ClassVar[str] = "mean tokens of a whole answer, relative to the baseline or to another control"
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "factor"

    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Ratio of means with its block-bootstrap interval: requests of one moment share what the stack does then. It
        names the answers that speak most against the bound.
        """
        baseline = view.times.windows.get("baseline")
        control = view.control or (Control(baseline, None, "the baseline") if baseline else None)
        if control is None or view.window is None:
            return Estimate(None, missing="the run has no baseline to compare with")
        samples = view.evidence.samples
        numbers = among(samples.outcome, ANSWERED), samples.tokens.astype(np.float64)
        found = compare_means(numbers, view, control, self.load, noun="tokens an answer", fewest=_FEWEST_ANSWERS)
        whole, lengths = numbers
        against = lengths if view.bound.at_most is not None else -lengths
        return replace(found, records=requests(samples, whole & view.requests(self.load), worst=against))
