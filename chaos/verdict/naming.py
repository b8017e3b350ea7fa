"""Names of records, for answers that say what they rest on: `journal 41`, `request chat/17 (trace 4b1c…)`.

A journal record is named by its number `n`, a request by its load and number in `samples.arrows` and, where it was
sent, by the trace id under which every part of the stack knows it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from chaos.journal.record import Record
from chaos.journal.tables import SampleTable
from chaos.verdict.events import happened_at
from chaos.verdict.view import Mask

MOST_NAMED = 3


def journal_line(record: Record) -> str:
    """`journal 41 (breaker_opened at 16.80s)`; what is no event of the stack has its kind; the time is the run's."""
    return f"journal {record.n} ({record.fields.get('name', record.kind)} at {happened_at(record):.2f}s)"


def journal_lines(records: Iterable[Record]) -> tuple[str, ...]:
    """The first few of these records."""
    return tuple(journal_line(record) for _, record in zip(range(MOST_NAMED), records, strict=False))


def request(samples: SampleTable, row: int) -> str:
    """`request chat/17 (failed: status_500, trace 4b1c…)`."""
    outcome, why = str(samples.outcome[row]), str(samples.why[row])
    trace = samples.trace_id[row].as_py()
    about = [f"{outcome}: {why}" if why else outcome, *([f"trace {trace}"] if trace else [])]
    return f"request {samples.load[row]}/{samples.request[row]} ({', '.join(about)})"


def requests(
    samples: SampleTable, rows: Mask, *, worst: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None
) -> tuple[str, ...]:
    """The first few of these rows; with `worst` those in which it is highest, the highest first."""
    found = np.flatnonzero(rows)
    if worst is not None:
        found = found[np.argsort(-worst[found], kind="stable")]
    return tuple(request(samples, int(row)) for row in found[:MOST_NAMED])
