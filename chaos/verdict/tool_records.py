"""The tool service's own records in the journal, joined to the requests of a load by their trace ids.

They prove something only when they were read to their end after the last of those requests had ended: until then a
missing record may simply not have been read.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from chaos.journal.record import Record
from chaos.verdict.events import happened_at
from chaos.verdict.view import Mask, View

LEDGER, AUDIT = "ledger", "audit"
_EVENTS = {LEDGER: "side_effect", AUDIT: "tool_call"}


def records_of(page: str, view: View) -> tuple[Record, ...]:
    """All records of a page since the run began; those of an earlier run with the same seed have the same traces."""
    told = (record for record in view.evidence.of_kind("event") if record.fields.get("name") == _EVENTS[page])
    return tuple(record for record in told if happened_at(record) >= 0)


def traces_at(view: View, rows: Mask) -> frozenset[str]:
    """The traces of these samples."""
    return frozenset(view.evidence.samples.trace_id.filter(pa.array(rows)).to_pylist())


def traces_of(records: tuple[Record, ...]) -> frozenset[str]:
    """The traces that they belong to."""
    return frozenset(str(record.fields.get("trace_id")) for record in records)


def per_intent(records: tuple[Record, ...]) -> Counter[tuple[str, str]]:
    """How often each intent, one tool within one trace, had its side effect."""
    return Counter((str(record.fields.get("trace_id")), str(record.fields.get("tool"))) for record in records)


def why_incomplete(page: str, view: View, rows: Mask) -> str | None:
    """Why the page may lack records of these requests; None when it was read to its end after the last of them."""
    beats = view.evidence.readings.select(f"{page}_unread")
    whole = beats.t[beats.value == 0]
    if not len(whole):
        return f"nobody read the {page} of a tool service to its end"
    ends = view.evidence.samples.end_s[rows]
    if len(ends) and float(whole.max()) < float(np.nanmax(ends)):
        return f"the {page} was not read after the last request had ended"
    return None
