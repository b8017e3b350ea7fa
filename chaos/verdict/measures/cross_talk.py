"""Did anybody get words that were meant for another? One answer is one too many.

Requests of a load with `marked: true` carry a word that no other request has: the beginning of its trace id. Status,
length and speed of an answer from another's prompt are as they should be, so nothing but its words can tell. Looked at
is every frame of every attempt, kept and shared answers like any other, and what broke off in the middle too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.gauges import exact
from chaos.verdict.naming import request
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import ANSWERED, View, among

_NAMED = 3


@dataclass(frozen=True)
class CrossTalk:
    """See `summary`."""

    name: ClassVar[str] = "cross_talk"
    summary: ClassVar[str] = "answers that hold the marker of another request (loads with `marked: true`)"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = True

    load: str | None = setting("only this load; default all that are marked", default=None)

    def estimate(self, view: View) -> Estimate:
        """An exact count, with the trace ids of the first few: whose answer, whose words."""
        samples = view.evidence.samples
        leaking = samples.leaked.known & (samples.leaked != "")
        said_something = among(samples.outcome, ANSWERED) | ~np.isnan(samples.first_token_s) | leaking
        answers = view.attempts(self.load) & samples.leaked.known & said_something
        if not answers.any():
            return Estimate(None, missing="no answer to a marked request in this window (`marked: true` on the load)")
        leaks = np.flatnonzero(answers & leaking)
        named = [self._named(view, int(row)) for row in leaks[:_NAMED]]
        detail = f"{len(leaks)} of {int(answers.sum())} answers" + "".join(f"; {each}" for each in named)
        found = exact(float(len(leaks)), int(answers.sum()), detail)
        return replace(found, records=tuple(request(samples, int(row)) for row in leaks[:_NAMED]))

    def _named(self, view: View, row: int) -> str:
        """Both requests of a leak, by their trace ids where the other one is known."""
        samples = view.evidence.samples
        beginning = str(samples.leaked[row]).split()[0].removeprefix("m-")
        others = (trace for trace in samples.trace_id.to_pylist() if trace.startswith(beginning))
        whose = next(others, f"{beginning}…, which is none of this run's")
        return f"the answer of {samples.trace_id[row].as_py()} holds the marker of {whose}"
