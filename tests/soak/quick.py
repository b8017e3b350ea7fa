"""What needs no run at all: damaged files, plans, the speed of a check, and how soon a stack is ready."""

from __future__ import annotations

import time
from collections.abc import Sequence

from caught import EXPERIMENTS
from drill import Drill
from harm import ours
from matrix import Figure, Found, Matrix, Row, Trial, bring_up
from mutations import survive
from toy import CATALOG, GOOD

from chaos.load.report import quantile
from chaos.wiring import catalog_for

MUTANTS = 2000
MUTANTS_EACH = 100
PLAN_SEEDS = range(1, 21)
CHECKS = 5
CHECK_WITHIN_S = 1.0
STARTS = 10
READY_WITHIN_S = 5.0


def damaged(trial: Trial, drill: Drill) -> Found:
    """A hundred mutants of a good file (the toy and every real one in turn) give an experiment or diagnostics."""
    del drill
    files = (None, *sorted(EXPERIMENTS.rglob("*.yaml")))
    file = files[trial.seed % len(files)]
    good, catalog = (GOOD, CATALOG) if file is None else (file.read_text(), catalog_for(file))
    tally = survive(good, catalog, MUTANTS_EACH, trial.seed)
    name = "toy" if file is None else str(file.relative_to(EXPERIMENTS))
    return Found(None, {"file": name, "mutants": MUTANTS_EACH, "good": tally["good"], "codes": len(tally)})


def planned_twice(trial: Trial, drill: Drill) -> Found:
    """The same file, inventory and seed give the same bytes."""
    files = sorted(EXPERIMENTS.rglob("*.yaml"))
    file = files[trial.seed % len(files)]
    one, two = (drill.call("plan", str(file), "--seed", str(trial.seed), "--json") for _ in range(2))
    assert one.returncode == 0, one.stderr
    return Found(
        None if one.stdout == two.stdout else "two plans differ", {"file": file.stem, "bytes": len(one.stdout)}
    )


def checked(trial: Trial, drill: Drill) -> Found:
    """`brownout check experiments`, from the start of the process to its end."""
    del trial
    began = time.monotonic()
    done = drill.call("check", str(EXPERIMENTS))
    took_s = time.monotonic() - began
    return Found(None if done.returncode == 0 else done.stderr, {"check_s": round(took_s, 3)})


def started(trial: Trial, drill: Drill) -> Found:
    """`brownout up` until it returns ready, then `down`, which leaves no process."""
    del trial
    began = time.monotonic()
    bring_up(drill)
    ready_s = time.monotonic() - began
    down = drill.call("down")
    left = ours(str(drill.folder))
    wrong = f"down gave {down.returncode}: {down.stderr}" if down.returncode else f"left: {left}" if left else None
    return Found(wrong, {"ready_s": round(ready_s, 3)})


def _counted(count: int, name: str) -> list[Trial]:
    return [Trial(f"{name}/{number}", number) for number in range(count)]


def _mutant_figures(rows: Sequence[Row]) -> list[Figure]:
    sums = {fact: float(sum(row.get(fact, 0) for row in rows)) for fact in ("mutants", "good")}
    return [Figure("mutants", sums["mutants"], unit=""), Figure("still good", sums["good"], unit="")]


def _values(rows: Sequence[Row], fact: str) -> list[float]:
    return [row[fact] for row in rows if fact in row]


MUTATIONS = Matrix(
    "mutations",
    "a damaged file gives an experiment or diagnostics, never a traceback",
    lambda: _counted(MUTANTS // MUTANTS_EACH, "mutants"),
    damaged,
    _mutant_figures,
    stack=False,
)
PLAN_BYTES = Matrix(
    "plan_bytes",
    "the same file, inventory and seed give the same plan, byte for byte",
    lambda: [Trial(f"plan/{seed}", seed) for seed in PLAN_SEEDS],
    planned_twice,
)
CHECK_SPEED = Matrix(
    "check_speed",
    "checking every experiment takes less than a second",
    lambda: _counted(CHECKS, "check"),
    checked,
    lambda rows: [Figure("median", quantile(_values(rows, "check_s"), 0.5), below=CHECK_WITHIN_S)],
    stack=False,
)
READY = Matrix(
    "ready",
    "the bundled stack is ready within five seconds, and goes without a trace",
    lambda: _counted(STARTS, "up and down"),
    started,
    lambda rows: [
        Figure("median", quantile(_values(rows, "ready_s"), 0.5)),
        Figure("max", max(_values(rows, "ready_s"), default=None), below=READY_WITHIN_S),
    ],
    stack=False,
)
