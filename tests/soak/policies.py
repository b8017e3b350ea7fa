"""Policies against independent reference models, over a hundred thousand random sequences of events each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "target_stack" / "gateway" / "policies")]

import reference_breaker
import reference_limiter
import reference_queue
import reference_retry_budget
from drill import Drill
from matrix import Figure, Found, Matrix, Row, Trial

SEQUENCES = 100_000
EACH = 5_000

Check = Callable[[int], str | None]
"""Plays the sequence of a seed to the policy and to its model, and says where the two part."""

CHECKS: tuple[tuple[str, Check], ...] = (
    ("breaker", reference_breaker.mismatch),
    ("retry_budget", reference_retry_budget.mismatch),
    ("queue", reference_queue.mismatch),
    ("limiter", reference_limiter.mismatch),
)


def _trials() -> Iterator[Trial]:
    for start in range(0, SEQUENCES, EACH):
        for name, _ in CHECKS:
            yield Trial(f"{name}/{start}", start)


def compared(trial: Trial, drill: Drill) -> Found:
    """Some thousand sequences of one policy; the first mismatch fails the trial."""
    del drill
    name = trial.name.partition("/")[0]
    check = dict(CHECKS)[name]
    wrong = [why for seed in range(trial.seed, trial.seed + EACH) if (why := check(seed))]
    return Found(wrong[0] if wrong else None, {"policy": name, "sequences": EACH, "mismatches": len(wrong)})


def _figures(rows: Sequence[Row]) -> list[Figure]:
    played = {name: sum(row["sequences"] for row in rows if row.get("policy") == name) for name, _ in CHECKS}
    mismatches = sum(row.get("mismatches", 0) for row in rows)
    return [Figure("mismatches", mismatches, "", below=1), *(Figure(name, count, "") for name, count in played.items())]


POLICIES = Matrix(
    "policies",
    f"breaker, budget, queue and limiter do what their reference models derive, in {SEQUENCES:,} sequences each",
    _trials,
    compared,
    _figures,
    stack=False,
)
