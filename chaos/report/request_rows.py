"""Single requests for a reader to look at: one row a request, with every attempt at it.

Numbers are rounded to a tenth of a millisecond, which is finer than any of them is true; times count from the start of
the load, waits from when the request was due.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from chaos.journal.tables import Integers, SampleTable
from chaos.report.facts import Facts

COLUMNS = (
    "load", "request", "due", "ttft", "took", "outcome", "why", "status", "served_by", "degraded", "answer", "tokens",
    "trace", "attempts",
)  # fmt: skip
ATTEMPT_COLUMNS = ("attempt", "sent", "first", "end", "outcome", "why", "status", "served_by", "trace")
_ANSWERS = {1: "right", 0: "wrong"}


def request_rows(facts: Facts, finals: Integers) -> list[list[Any]]:
    """One row under COLUMNS for each of these final rows of the sample table, in their order."""
    samples = facts.evidence.samples
    attempts = _attempts(samples, finals)
    return [_row(facts, int(row), attempts[_key(samples, int(row))]) for row in finals]


def _row(facts: Facts, row: int, attempts: Sequence[int]) -> list[Any]:
    samples = facts.evidence.samples
    due = float(samples.intended_s[row])
    return [
        str(samples.load[row]),
        int(samples.request[row]),
        rounded(due - facts.zero),
        rounded(float(samples.first_token_s[row]) - due),
        rounded(float(samples.end_s[row]) - due),
        str(samples.outcome[row]),
        str(samples.why[row]),
        int(samples.status[row]),
        str(samples.served_by[row]),
        str(samples.degraded[row]),
        _ANSWERS.get(int(samples.answer_ok[row]), ""),
        int(samples.tokens[row]),
        _trace(samples, row),
        [_attempt(samples, attempt, due) for attempt in attempts],
    ]


def _attempt(samples: SampleTable, row: int, due: float) -> list[Any]:
    """Under ATTEMPT_COLUMNS; its times count from when the request was due."""
    return [
        int(samples.attempt[row]),
        *(rounded(float(column[row]) - due) for column in (samples.sent_s, samples.first_token_s, samples.end_s)),
        str(samples.outcome[row]),
        str(samples.why[row]),
        int(samples.status[row]),
        str(samples.served_by[row]),
        _trace(samples, row),
    ]


def _attempts(samples: SampleTable, finals: Integers) -> Mapping[tuple[str, int], list[int]]:
    """The rows of all attempts at these requests, the first attempt first."""
    wanted: dict[tuple[str, int], list[int]] = {_key(samples, int(row)): [] for row in finals}
    candidates = np.flatnonzero(np.isin(samples.request, samples.request[finals]))
    for row in candidates[np.argsort(samples.attempt[candidates], kind="stable")].tolist():
        if (key := _key(samples, row)) in wanted:
            wanted[key].append(row)
    return wanted


def _key(samples: SampleTable, row: int) -> tuple[str, int]:
    return (str(samples.load[row]), int(samples.request[row]))


def _trace(samples: SampleTable, row: int) -> str:
    return samples.trace_id[row].as_py() or ""


def rounded(value: float | None, digits: int = 4) -> float | None:
    """For JSON: None for what is not known or never came."""
    return None if value is None or not math.isfinite(value) else round(value, digits)


def all_rounded(values: Iterable[float], digits: int = 4) -> list[float | None]:
    """Each of them."""
    return [rounded(float(value), digits) for value in values]
