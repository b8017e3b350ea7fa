"""Is everything there that was said to be there?

The history is what the clients of a load know of their writes, the shelf what the store itself lists after the last
of them and after the last revert. A write that nobody acknowledged may be there or not, once; see
`chaos.verdict.history`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from chaos.journal.tables import SampleTable
from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.events import happened_at
from chaos.verdict.gauges import exact
from chaos.verdict.history import Broken, compare
from chaos.verdict.naming import request
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import ANSWERED, Mask, View, among

LISTED = "uploads_listed"
_STEPS = {"document_stored": 1, "document_gone": -1}
_DIGITS = 12
_NAMED = 5


@dataclass(frozen=True)
class Durability:
    """See `summary`."""

    name: ClassVar[str] = "durability"
    summary: ClassVar[str] = (
        "documents lost, stored twice or invented: what the store lists against what was acknowledged"
    )
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = False

    load: str = setting("a load on the route `ingest`")

    def estimate(self, view: View) -> Estimate:
        """An exact count over the whole run."""
        samples, rows = view.evidence.samples, view.requests(self.load)
        sent = rows & (samples.attempt >= 1)
        acknowledged = sent & among(samples.outcome, ANSWERED)
        if not acknowledged.any():
            return Estimate(None, missing=f"no document of {self.load} was acknowledged")
        unlisted = _why_unlisted(view, sent)
        if unlisted:
            return Estimate(None, missing=unlisted)
        whose = {_marker(samples, row): row for row in np.flatnonzero(view.requests()).tolist()}
        stored = _stored(view, frozenset(whose))
        broken = compare(_markers(samples, acknowledged), _markers(samples, _sent_by_anybody(view)), stored)
        detail = (
            f"{len(broken.lost)} lost, {len(broken.duplicated)} stored twice, {len(broken.invented)} invented, "
            f"of {int(acknowledged.sum())} acknowledged"
        )
        found = exact(float(broken.count), int(acknowledged.sum()), detail)
        return replace(found, records=_named(broken, samples, whose))


def _sent_by_anybody(view: View) -> Mask:
    return view.requests() & (view.evidence.samples.attempt >= 1)


def _why_unlisted(view: View, sent: Mask) -> str | None:
    """Why the last list may not be the last word; None when it was read after all was over."""
    beats = view.evidence.readings.select(LISTED)
    if not len(beats):
        return "nobody listed what the store holds"
    last = float(beats.t.max())
    if last < float(np.nanmax(view.evidence.samples.end_s[sent])):
        return "the store was not listed after the last request had ended"
    if view.times.faults and (view.times.last_revert is None or last < view.times.last_revert):
        return "the store was not listed after the last revert"
    return None


def _stored(view: View, ours: frozenset[str]) -> Counter[str]:
    """How often each marker is on the shelf at the end. What came before the load, such as the gate's own, is not of
    this run unless a request of it has the marker.
    """
    start, shelf = view.times.load_start or 0.0, Counter[str]()
    for record in view.evidence.of_kind("event"):
        step = _STEPS.get(str(record.fields.get("name")))
        marker = str(record.fields.get("marker"))
        if step and happened_at(record) >= (0.0 if marker in ours else start):
            shelf[marker] += step
    return shelf


def _marker(samples: SampleTable, row: int) -> str:
    return f"m-{samples.trace_id[row].as_py()[:_DIGITS]}"


def _markers(samples: SampleTable, rows: Mask) -> frozenset[str]:
    return frozenset(_marker(samples, row) for row in np.flatnonzero(rows).tolist())


def _named(broken: Broken, samples: SampleTable, whose: dict[str, int]) -> tuple[str, ...]:
    kinds = (("lost", broken.lost), ("stored twice", broken.duplicated), ("invented", broken.invented))
    told = [(kind, marker) for kind, markers in kinds for marker in markers]
    return tuple(
        f"{request(samples, whose[marker])}: {kind}" if marker in whose else f"document {marker}: {kind}"
        for kind, marker in told[:_NAMED]
    )
