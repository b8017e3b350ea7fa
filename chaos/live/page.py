"""What is served while runs go on: the metrics of the one that runs, the annotations of all of this session.

    GET /metrics       Prometheus text, classic or OpenMetrics as the scraper asks
    GET /annotations   a JSON array for Grafana

A page must never disturb the run that it tells about: whatever goes wrong here is said once and then left alone.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from chaos.live.following import Annotation, Followed
from chaos.openmetrics import CLASSIC_TYPE, OPENMETRICS_TYPE, to_text
from chaos.plan.plan import Plan
from chaos.ports import Clock

MOST_ANNOTATIONS = 2000
REST = 50
"""An answer that took so long to make is given again for so many times as long: whoever asks how often, a page takes at
most a fiftieth of the run's time.
"""

Tell = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Answer:
    """A reply of the page."""

    status: int
    content_type: str
    body: str


_NOTHING = Answer(404, "text/plain; charset=utf-8", "there are /metrics and /annotations\n")


@dataclass
class LivePage:
    """Follows one run after the other. `warn` hears the first thing that goes wrong, and nothing after it."""

    clock: Clock
    warn: Callable[[str], None]
    _run: Followed | None = None
    _past: deque[Annotation] = field(default_factory=lambda: deque(maxlen=MOST_ANNOTATIONS))
    _warned: bool = False
    _made: dict[tuple[str, bool], tuple[float, Answer]] = field(default_factory=dict)

    def follow(self, plan: Plan) -> Tell:
        """Begin with a new run; the listener that comes back never raises."""
        if self._run is not None:
            self._past.extend(self._run.annotations(self._now_s(self._run)))
        followed = self._run = Followed(plan)
        self._made.clear()

        def tell(kind: str, fields: Mapping[str, Any]) -> None:
            try:
                followed.tell(kind, fields)
            except Exception as problem:  # noqa: BLE001  a page that cannot follow must not end the run
                self.note(problem)

        return tell

    def note(self, problem: BaseException) -> None:
        """Say what went wrong, the first time."""
        if not self._warned:
            self._warned = True
            self.warn(f"the metrics page has trouble, the run goes on: {type(problem).__name__}: {problem}")

    def answer(self, path: str, accept: str) -> Answer:
        """The reply to a GET of this path."""
        asked, began = (path, "application/openmetrics-text" in accept), self.clock.now()
        until, made = self._made.get(asked, (-math.inf, _NOTHING))
        if began < until:
            return made
        made = self._make(*asked)
        if made.status == HTTPStatus.OK:
            took = self.clock.now() - began
            self._made[asked] = (began + REST * took, made)
        return made

    def _make(self, path: str, openmetrics: bool) -> Answer:
        if path == "/metrics":
            return self._metrics(openmetrics)
        if path == "/annotations":
            return Answer(200, "application/json", json.dumps(self._annotations()))
        return _NOTHING

    def _metrics(self, openmetrics: bool) -> Answer:
        run = self._run
        text = to_text(run.families(self._now_s(run)) if run else (), openmetrics=openmetrics)
        return Answer(200, OPENMETRICS_TYPE if openmetrics else CLASSIC_TYPE, text)

    def _annotations(self) -> list[Annotation]:
        current = self._run.annotations(self._now_s(self._run)) if self._run else ()
        return [*self._past, *current]

    def _now_s(self, run: Followed) -> float:
        return self.clock.now() - float(run.header.get("origin", self.clock.now()))
