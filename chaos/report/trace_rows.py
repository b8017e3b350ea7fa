"""The calls that single requests led to, for a reader to look at: one row a call, each under the one that made it.

Traces are big and a page is small: they are taken in the order given until MOST_CALLS are in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chaos.journal.record import Span
from chaos.report.facts import Facts
from chaos.report.request_rows import rounded
from chaos.verdict.traces import trees_of

COLUMNS = ("depth", "kind", "service", "name", "peer", "begin", "end", "outcome", "attempt", "prompt", "output")
MOST_CALLS = 8000


def trace_rows(facts: Facts, trace_ids: Iterable[str]) -> Mapping[str, list[list[Any]]]:
    """Rows under COLUMNS for each trace that left any; times count from the start of the load."""
    trees = trees_of(dict.fromkeys(each for each in trace_ids if each), facts.evidence.spans)
    rows, calls = dict[str, list[list[Any]]](), 0
    for trace_id, branches in trees.items():
        walked = [_row(facts.zero, depth, span) for branch in branches for depth, span in branch.walk()]
        calls += len(walked)
        if calls > MOST_CALLS:
            break
        if walked:
            rows[trace_id] = walked
    return rows


def _row(zero: float, depth: int, span: Span) -> list[Any]:
    return [
        depth, span.kind, span.service, span.name, span.peer, rounded(span.start_s - zero), rounded(span.end_s - zero),
        span.outcome, span.attempt, span.prompt_tokens, span.output_tokens,
    ]  # fmt: skip
