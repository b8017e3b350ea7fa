"""Ten times the usual failures in a thousand runs: how soon a guard stops them, and how often it does for nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent)]

from drill import Drill
from matrix import Figure, Found, Matrix, Row, Trial

from tests.verdict.trouble import BASELINE, FALSE_STOPS, RISEN, USUAL, fixed_size, tripped_after

RUNS, EACH = 1_000, 50
BEGINNINGS = {"from the start": 0, "from a planned change": BASELINE, "unplanned": BASELINE + 137}
OF_FIXED_AT_MOST = 0.15


def _trials() -> Iterator[Trial]:
    for start in range(0, RUNS, EACH):
        for kind in ("as usual", *BEGINNINGS):
            yield Trial(f"{kind}/{start}", start)


def watched(trial: Trial, drill: Drill) -> Found:
    """Fifty runs of one kind; trouble that is not noticed in the whole run fails the trial."""
    del drill
    kind, seeds = trial.name.rpartition("/")[0], range(trial.seed, trial.seed + EACH)
    if kind == "as usual":
        stopped = [seed for seed in seeds if tripped_after(seed, USUAL, 0) is not None]
        return Found(None, {"kind": kind, "runs": EACH, "false": len(stopped)})
    took = [tripped_after(seed, RISEN, BEGINNINGS[kind]) for seed in seeds]
    real = [samples for samples in took if samples is not None and samples > 0]
    missed = sum(samples is None for samples in took)
    facts = {"kind": kind, "runs": EACH, "false": len(took) - len(real) - missed, "stopped": len(real)}
    return Found(f"{missed} not stopped" if missed else None, {**facts, "samples": sum(real)})


def _figures(rows: Sequence[Row]) -> list[Figure]:
    quiet = [row for row in rows if row.get("kind") == "as usual"]
    runs = sum(row["runs"] for row in quiet)
    false = 100 * sum(row["false"] for row in quiet) / runs if runs else None
    figures = [Figure("false stops", false, "%", 100 * FALSE_STOPS + 1e-9)]
    for kind in BEGINNINGS:
        of_kind = [row for row in rows if row.get("kind") == kind and row.get("stopped")]
        stopped = sum(row["stopped"] for row in of_kind)
        mean = sum(row["samples"] for row in of_kind) / stopped if stopped else None
        share = None if mean is None else mean / fixed_size()
        figures += [
            Figure(f"{kind}: outcomes", mean, ""),
            Figure("of the fixed size", share, "", OF_FIXED_AT_MOST + 1e-9),
        ]
    return figures


EARLY_STOPS = Matrix(
    "sequential",
    f"ten times the failures are stopped after {OF_FIXED_AT_MOST:.0%} of the {fixed_size()} outcomes of a fixed test, "
    "with at most 1 % false stops under continuous peeking",
    _trials,
    watched,
    _figures,
    stack=False,
)
