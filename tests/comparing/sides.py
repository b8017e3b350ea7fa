"""Sides of comparisons, told by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chaos.comparing.side import Side, side_of_run, side_of_series
from chaos.verdict.outcome import Verdict
from tests.series.made import run, series

ENVIRONMENT: Mapping[str, Any] = {
    "version": 1,
    "python": "3.11.7",
    "cores": 2,
    "load_average": [1.5, 1.25, 1.0],
    "distributions": {"numpy": "2.1.0", "aiohttp": "3.12.0"},
    "commit": "0123abcd",
}
DURING = {"served": "300 (100%)", "degraded": "300 (100%)", "failed": "0", "TTFT p99": "84.3ms"}
STORM = {"served": "225 (75%)", "degraded": "225 (75%)", "failed": "75 (25%)", "TTFT p99": "never"}


def run_side(letter: str, number: int = 1, label: str = "runs/x/one", **facts: Any) -> Side:
    """A run of this kind; `facts` change what it ran on."""
    verdict = run(letter, number)
    return side_of_run(label, verdict, "the file", ENVIRONMENT | facts, STORM if letter == "r" else DURING)


def of_verdict(verdict: Verdict) -> Side:
    return side_of_run("runs/x/one", verdict, "the file", ENVIRONMENT, DURING)


def series_side(letters: str, label: str = "runs/x/series-1", **facts: Any) -> Side:
    """A series of such runs."""
    return side_of_series(label, series(letters), "the file", ENVIRONMENT | facts)


def with_answer(verdict: Verdict, asked: str, /, **changes: Any) -> Verdict:
    """A verdict one of whose hypotheses found something else."""
    answers = tuple(replace(h, **changes) if h.name == asked else h for h in verdict.hypotheses)
    return replace(verdict, hypotheses=answers)
