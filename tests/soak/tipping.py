"""Metastable failures in virtual time: the judge against known truths, the closed forms against the model."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace

from corpus import BEFORE_S, Case, safe, slow, stuck
from drill import Drill
from matrix import Figure, Found, Matrix, Row, Trial

from chaos.tipping.predict import critical_load
from chaos.tipping.search import by_control_arm, diagnosed, tipping_length
from chaos.tipping.system import Budget, System, Trigger

CASES = 100
_DRAW = {"stuck": stuck, "safe": safe, "slow": slow}
_RUNS = 30
_CPU_S = 1.0
_WITHIN = 0.05


def judged(trial: Trial, drill: Drill) -> Found:
    """One configuration, judged from its evidence alone; where it stays down, each loop is cut in an arm of its own."""
    del drill
    kind = trial.name.partition("/")[0]
    case = _DRAW[kind](trial.seed)
    found = diagnosed(case.system, case.trigger, trial.seed, before_s=BEFORE_S, after_s=case.after_s)
    named = found.loops[0].loop if found.loops else None
    facts = {
        "kind": kind,
        "state": found.state,
        "loop": case.loop,
        "named": named,
        "proved": _proved(kind, case, trial),
    }
    return Found("a slow one is called stuck" if kind == "slow" and found.state == "stuck" else None, facts)


def _proved(kind: str, case: Case, trial: Trial) -> str | None:
    if kind != "stuck":
        return None
    arms = by_control_arm(case.system, case.trigger, trial.seed, before_s=BEFORE_S, after_s=case.after_s)
    return next((arm.loop for arm in arms if arm.found.state == "recovered"), None)


def _share_wrong(rows: Sequence[Row], kind: str, fact: str, wanted: object) -> float | None:
    """The share of a kind whose fact is not what it should be; `wanted` names a fact or is a value."""
    chosen = [row for row in rows if row.get("kind") == kind]
    wrong = sum(row[fact] != (row["loop"] if wanted == "loop" else wanted) for row in chosen)
    return wrong / len(chosen) if chosen else None


def _confusion(rows: Sequence[Row]) -> list[Figure]:
    called = [row for row in rows if row.get("kind") == "safe"]
    false = sum(row["state"] == "stuck" for row in called) / len(called) if called else None
    slow_called = [row["state"] for row in rows if row.get("kind") == "slow"]
    return [
        Figure("stuck and not called so", _share_wrong(rows, "stuck", "state", "stuck"), "", 0.01 + 1e-9),
        Figure("safe and called stuck", false, "", 0.01 + 1e-9),
        Figure("safe and not seen to recover", _share_wrong(rows, "safe", "state", "recovered"), ""),
        Figure("loop named wrong by one run", _share_wrong(rows, "stuck", "named", "loop"), "", 0.05 + 1e-9),
        Figure("loop named wrong by control arms", _share_wrong(rows, "stuck", "proved", "loop"), "", 0.05 + 1e-9),
        Figure("slow and called stuck", float(slow_called.count("stuck")) if slow_called else None, "", below=1),
    ]


METASTABLE = Matrix(
    "metastable",
    f"{CASES} stacks that stay down are told from {CASES} that come back, with the loop; slow is never called stuck",
    lambda: [Trial(f"{kind}/{seed}", seed) for kind in _DRAW for seed in range(CASES)],
    judged,
    _confusion,
    stack=False,
)

ATTEMPTS, BUDGETS = (2, 3, 4, 6), (None, 0.1, 0.2, 0.5)
HORIZON_S = 600.0
_BOUNDARY_CAPACITY = 100.0
_STEADY_UP_TO = 0.97


def bounded(trial: Trial, drill: Drill) -> Found:
    """Bisect the load above which a loop that was pushed hard stays down; compare with 1 / min(k, 1 + beta)."""
    del drill
    attempts, budget = _cells()[trial.name]
    system = System(1.0, _BOUNDARY_CAPACITY, 1.0, attempts, budget=None if budget is None else Budget(budget))
    formula = critical_load(system.clients)
    low, high = formula * 0.8, min(formula * 1.2, _STEADY_UP_TO)  # above that no baseline is a steady state
    for _ in range(5):
        load = (low + high) / 2
        heavy = replace(system, rate_per_s=load * _BOUNDARY_CAPACITY)
        found = diagnosed(heavy, Trigger("capacity", 10.0, 0.0), 1, before_s=20.0, after_s=HORIZON_S)
        low, high = (low, load) if found.state == "stuck" else (load, high)
    off = abs((low + high) / 2 / formula - 1)
    return Found(f"off by {off:.1%}" if off > _WITHIN else None, {"off": off, "seen": (low + high) / 2})


def _cells() -> dict[str, tuple[int, float | None]]:
    cells = itertools.product(ATTEMPTS, BUDGETS)
    return {f"k {k}, budget {'none' if beta is None else f'{beta:g}'}": (k, beta) for k, beta in cells}


BOUNDARY = Matrix(
    "boundary",
    f"the load at which a storm sustains itself is that of the closed form within 5% in {len(_cells())} cells",
    lambda: [Trial(name, 1) for name in _cells()],
    bounded,
    lambda rows: [Figure("worst", max((row["off"] for row in rows if "off" in row), default=None), "", _WITHIN + 1e-9)],
    stack=False,
)


def tipped(trial: Trial, drill: Drill) -> Found:
    """Bisect the shortest trigger; compare with the closed form, count runs and CPU seconds."""
    del drill
    load, left, attempts = _points()[trial.name]
    system = System(load * 100, 100.0, 1.0, attempts, even=True)
    began = time.process_time()
    found = tipping_length(system, Trigger("capacity", 1.0, left), 1)
    each_s = (time.process_time() - began) / found.runs
    if found.point is None or found.predicted is None:
        return Found(f"no tipping point found in {found.runs} runs")
    off = abs(found.point / found.predicted - 1)
    facts = {"off": off, "runs": found.runs, "cpu_s": each_s, "point": found.point}
    return Found(f"off by {off:.1%}" if off > _WITHIN else None, facts)


def _points() -> dict[str, tuple[float, float, int]]:
    chosen = itertools.product((0.55, 0.7, 0.85), (0.1, 0.4), (2, 4))
    more = [(0.3, 0.1, 4), (0.4, 0.1, 3), (0.5, 0.4, 4), (0.5, 0.1, 3)]
    return {f"load {load:g}, {left:.0%} left, k {k}": (load, left, k) for load, left, k in (*chosen, *more)}


def _tipped_figures(rows: Sequence[Row]) -> list[Figure]:
    def worst(fact: str) -> float | None:
        return max((row[fact] for row in rows if fact in row), default=None)

    return [
        Figure("worst", worst("off"), "", _WITHIN + 1e-9),
        Figure("runs", worst("runs"), "", _RUNS + 1),
        Figure("a run", worst("cpu_s"), "s CPU", _CPU_S),
    ]


TIPPING = Matrix(
    "tipping",
    f"the shortest trigger that tips is that of the closed form within 5%, in at most {_RUNS} runs of a CPU second",
    lambda: [Trial(name, 1) for name in _points()],
    tipped,
    _tipped_figures,
    stack=False,
)
