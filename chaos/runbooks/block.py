"""The rehearsed-by table: when was this failure last practised, and how did it end? Newest first, five rows at most.

    | date | experiment | verdict | detected after | recovered after | run |

Old rows are read back from the page, so the page itself is the only memory. A row that a person broke is dropped, not
guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from chaos.verdict.outcome import Verdict
from chaos.verdict.wording import say

KEPT = 5
HEAD = ("date", "experiment", "verdict", "detected after", "recovered after", "run")

_TRUTHS = ("upheld", "refuted", "inconclusive")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Rehearsal:
    """One row. All fields are text as it stands on the page."""

    date: str
    experiment: str
    verdict: str
    detected: str
    recovered: str
    run: str


def rehearsal(verdict: Verdict, date: str) -> Rehearsal:
    """The row of one run; `date` is `2026-12-01`.

    Detected: the quickest event that the stack itself told after a fault began. Recovered: the longest recovery time
    that was measured. `-` where the experiment did not ask.
    """
    events = [h.value for h in verdict.hypotheses if h.measure == "event" and h.value is not None]
    recoveries = [h for h in verdict.hypotheses if h.measure == "recovery_time"]
    seconds = [h.value for h in recoveries if h.value is not None]
    never = any(h.value is None and h.interval is not None for h in recoveries)
    slowest = "not seen" if never else say(max(seconds, default=None), "duration")
    return Rehearsal(
        date=date,
        experiment=verdict.experiment,
        verdict=verdict.verdict,
        detected=say(min(events, default=None), "duration"),
        recovered=slowest,
        run=verdict.run,
    )


def rows_of(block: str) -> tuple[Rehearsal, ...]:
    """The rows of a block as it stands on a page."""
    found = []
    for line in block.splitlines():
        cells = [cell.strip() for cell in _CELL.split(line.strip())[1:-1]]
        if len(cells) == len(HEAD) and _DATE.fullmatch(cells[0]) and cells[2] in _TRUTHS:
            found.append(Rehearsal(*(_unescape(cell) for cell in cells)))
    return tuple(found)


def render(rows: Iterable[Rehearsal]) -> str:
    """The block for these rows: newest first, one row a run, the last five. No rows is said in words."""
    by_run = {row.run: row for row in rows}
    newest = sorted(by_run.values(), key=lambda row: (row.date, row.run), reverse=True)[:KEPT]
    if not newest:
        return "Not rehearsed yet."
    lines = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    lines += [f"| {' | '.join(_escape(text) for text in astuple(row))} |" for row in newest]
    return "\n".join(lines)


def next_block(block: str, new: Rehearsal) -> str:
    """The block after one more run; the same run again replaces its own row."""
    return render((*rows_of(block), new))


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _unescape(cell: str) -> str:
    return cell.replace("\\|", "|")
