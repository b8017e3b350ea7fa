"""What the judge makes of a thousand pairs of equal arms in noise that comes in waves, and what naive tests make."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent)]

from drill import Drill
from matrix import Figure, Found, Matrix, Row, Trial

from tests.verdict.noise import LoadKind, arms, independent_bootstrap_differs, judged, mann_whitney_differs

PAIRS = 1_000
EACH = 50
KINDS: tuple[LoadKind, ...] = ("separate", "shared")
MARGIN, SHIFT = 1.1, 1.5
FALSE_AT_MOST, CAUGHT_AT_LEAST = 0.01, 0.9


def _trials() -> Iterator[Trial]:
    for start in range(0, PAIRS, EACH):
        for kind in KINDS:
            yield Trial(f"{kind}/{start}", start)


def compared(trial: Trial, drill: Drill) -> Found:
    """Fifty pairs, each as it is and with one arm slower; an upheld claim about the slower one fails the trial."""
    del drill
    kind = next(kind for kind in KINDS if trial.name.startswith(kind))
    facts = {"kind": kind, "pairs": EACH, "false": 0, "caught": 0, "upheld_slower": 0, "ranks": 0, "single": 0}
    spent = 0.0
    for seed in range(trial.seed, trial.seed + EACH):
        pair = arms(kind, seed)
        began = time.process_time()
        alike, slower = judged(pair, MARGIN), judged(pair.slower(SHIFT), MARGIN)
        spent += time.process_time() - began
        facts["false"] += alike.verdict == "refuted"
        facts["caught"] += slower.verdict == "refuted"
        facts["upheld_slower"] += slower.verdict == "upheld"
        facts["ranks"] += mann_whitney_differs(pair)
        facts["single"] += independent_bootstrap_differs(pair, seed)
    wrong = f"{facts['upheld_slower']} slower arms were upheld" if facts["upheld_slower"] else None
    return Found(wrong, {**facts, "judge_s": spent / (2 * EACH)})


def _figures(rows: Sequence[Row]) -> list[Figure]:
    return [figure for kind in KINDS for figure in _of_kind(kind, [r for r in rows if r.get("kind") == kind])]


def _of_kind(kind: LoadKind, rows: Sequence[Row]) -> list[Figure]:
    pairs = sum(row["pairs"] for row in rows)

    def share(fact: str) -> float | None:
        return 100 * sum(row[fact] for row in rows) / pairs if pairs else None

    caught = share("caught")
    judge_s = max((row["judge_s"] for row in rows), default=None)
    return [
        Figure(f"{kind}: false refutations", share("false"), "%", 100 * FALSE_AT_MOST + 1e-9),
        Figure(f"x{SHIFT} missed", None if caught is None else 100 - caught, "%", 100 * (1 - CAUGHT_AT_LEAST) + 1e-9),
        Figure("rank test alarms", share("ranks"), "%"),
        Figure("bootstrap of single requests alarms", share("single"), "%"),
        Figure("one judgement", None if judge_s is None else 1000 * judge_s, "ms CPU"),
    ]


PAIRED_NOISE = Matrix(
    "aa",
    f"of {PAIRS:,} pairs of equal arms at most 1 % are told apart by a margin of {MARGIN}, of those with a p99 "
    f"{SHIFT} times as high at least 90 %",
    _trials,
    compared,
    _figures,
    stack=False,
)
