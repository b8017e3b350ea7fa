"""Failures of engines in virtual time, with the gateway's real policies: the promises that a minute's outage tests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "target_stack" / "simulation")]

from drill import Drill
from matrix import Figure, Found, Matrix, Row, Trial
from scenarios import (
    AMPLIFIED_AT_MOST,
    DOWN_S,
    ROUTED_WITHIN_S,
    STALL_PERIOD_S,
    WAYS,
    out_after_freeze,
    outage,
    routed_after_loss,
)

SEEDS = range(1, 11)
LOSSES = range(1, 51)


def amplified(trial: Trial, drill: Drill) -> Found:
    """All engines down in one way; and for comparison the same minute without the budget."""
    del drill
    way = trial.name.partition("/")[0]
    hardened, weak = outage(way, trial.seed), outage(way, trial.seed, "retries_without_budget", "breaker_missing")
    facts = {"calls": hardened.calls, "tokens": hardened.tokens, "weak_calls": weak.calls, "weak_tokens": weak.tokens}
    worst = max(hardened.calls, hardened.tokens)
    return Found(f"amplified {worst:.3f} times" if worst > AMPLIFIED_AT_MOST else None, facts)


def left(trial: Trial, drill: Drill) -> Found:
    """One engine dies, and in another run freezes."""
    del drill
    facts = {"routed_s": routed_after_loss(trial.seed), "out_s": out_after_freeze(trial.seed)}
    late = facts["routed_s"] > ROUTED_WITHIN_S or facts["out_s"] > 2 * STALL_PERIOD_S
    return Found(f"too late: {facts}" if late else None, facts)


def _worst(rows: Sequence[Row], fact: str, unit: str, below: float | None = None) -> Figure:
    return Figure(fact, max((row[fact] for row in rows if fact in row), default=None), unit, below)


def _just_above(bound: float) -> float:
    return bound + 1e-9  # a figure must lie below its bar, and these bounds may be touched


AMPLIFICATION = Matrix(
    "amplification",
    f"with every engine down for {DOWN_S:.0f}s, retries cost at most a tenth more, in calls and in tokens",
    lambda: [Trial(f"{way}/{seed}", seed) for seed in SEEDS for way in WAYS],
    amplified,
    lambda rows: [
        *(_worst(rows, fact, "", _just_above(AMPLIFIED_AT_MOST)) for fact in ("calls", "tokens")),
        *(_worst(rows, fact, "") for fact in ("weak_calls", "weak_tokens")),
    ],
    stack=False,
)
ROTATION = Matrix(
    "rotation",
    f"nobody is sent to a dead replica after {ROUTED_WITHIN_S}s; a frozen one is out after two stall periods",
    lambda: [Trial(f"loss/{seed}", seed) for seed in LOSSES],
    left,
    lambda rows: [
        _worst(rows, "routed_s", "s", _just_above(ROUTED_WITHIN_S)),
        _worst(rows, "out_s", "s", _just_above(2 * STALL_PERIOD_S)),
    ],
    stack=False,
)
