"""The gateway examines its own retrieval: standard questions with known right documents, a few every period.

Health checks say that a vector store answers, not that it answers rightly: one that was restored without its rows, or
with another model's vectors or an old edition, is quick and green. A question without an answer counts as a miss,
since no user gets the right document then either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from target_stack.fixtures import Question
from target_stack.gateway.call import Call
from target_stack.gateway.dependency import DependencyDown
from target_stack.gateway.policies.deadline import Deadline
from target_stack.gateway.policies.observing import RecallSettings, RecallWatch
from target_stack.gateway.retrieval import Retrieval
from target_stack.gateway.telemetry import Telemetry
from target_stack.gateway.trace import trace_of


@dataclass(frozen=True)
class RecallProbe:
    """Asks and tells. `limit_s` is the time that one question may take."""

    retrieval: Retrieval
    questions: Sequence[Question]
    settings: RecallSettings
    telemetry: Telemetry
    limit_s: float

    async def run(self) -> None:
        """Examine until cancelled; the first round is asked after a period, so that a start is no examination."""
        watch = RecallWatch(self.settings)
        self.telemetry.metrics.content.show_recall(lambda: watch.ratio)
        asked = cycle(self.questions)
        while True:
            await asyncio.sleep(self.settings.period_s)
            await self._round(watch, list(islice(asked, self.settings.questions)))

    async def _round(self, watch: RecallWatch, questions: Sequence[Question]) -> None:
        # One after the other: an examination must not be a burst of load.
        hits = [await self._hit(question) for question in questions]
        event = watch.round(hits)
        if event is not None:
            self.telemetry.events.add(event, dependency="vector-store", ratio=watch.ratio)

    async def _hit(self, question: Question) -> bool:
        try:
            found = await self.retrieval.documents(question.text, self._call())
        except DependencyDown:
            result = "unanswered"
        else:
            result = "hit" if any(self._right(question, *document) for document in found) else "miss"
        self.telemetry.metrics.content.recall_probes.add(result)
        return result == "hit"

    def _right(self, question: Question, name: str, body: str) -> bool:
        says_so = self.settings.look_at == "name" or question.answered_by(body)
        return name == question.document and says_so

    def _call(self) -> Call:
        now = self.telemetry.clock()
        trace = trace_of({}, self.telemetry.rng)
        return Call(trace, arrived=now, deadline=Deadline.of(now, self.limit_s), priority="batch")
