"""The harness is interrupted at random instants; the stack must be whole, and the run reported."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence

from by_undo import ALL
from drill import Drill, until_whole
from matrix import Figure, Found, Matrix, Row, Trial, ended

from chaos.load.report import quantile

SIGNALS_EACH = 5
WHOLE_WITHIN_S = 2.0
TWO_AT_MOST_APART_S = 0.3

ASKED = (("SIGINT", 1), ("SIGINT", 2), ("SIGTERM", 1))


def _signal_trials() -> list[Trial]:
    return [Trial(f"{name}x{times}/{n}", n) for n in range(SIGNALS_EACH) for name, times in ASKED]


def signalled(trial: Trial, drill: Drill) -> Found:
    """Interrupt one run of a random fault, before or while it is in force: reverted, reported, exit code 3."""
    dice = random.Random(trial.name)
    asked, _, times = trial.name.partition("/")[0].partition("x")
    fault, delay_s, began = dice.choice(ALL), dice.uniform(0, 5), time.time()
    with ended(drill.begin_run(fault, "--seed", str(trial.seed))) as process:
        drill.wait_for("load_started", process, began)
        time.sleep(delay_s)
        for _ in range(int(times)):
            process.send_signal(signal.Signals[asked])
            time.sleep(dice.uniform(0, TWO_AT_MOST_APART_S))
        sent = time.monotonic()
        out, err = process.communicate(timeout=30)
        ended_s = time.monotonic() - sent
    took_s, broken = until_whole(drill, 5)
    by = [line["by"] for line in drill.journal() if line["kind"] == "stop_requested"]
    facts = {"fault": fault, "instant": f"load_started+{delay_s:.3f}s", "ended_s": round(ended_s, 3), "broken": broken}
    wrong = _broken(took_s, broken)
    if process.returncode != 3:
        wrong = f"exit code {process.returncode}: {out}{err}"
    elif not (drill.last_run() / "report.md").is_file():
        wrong = "no report.md"
    elif by != [asked]:
        wrong = f"the journal says that {by} asked"
    return Found(wrong, facts)


def _broken(took_s: float, broken: list[str]) -> str | None:
    if broken:
        return f"still broken after {took_s:.1f}s: {broken}"
    return f"whole only after {took_s:.2f}s" if took_s > WHOLE_WITHIN_S else None


def _spread(rows: Sequence[Row], fact: str, below: float | None = None) -> list[Figure]:
    values = [row[fact] for row in rows if fact in row]
    return [Figure("p50", quantile(values, 0.5)), Figure("max", max(values, default=None), below=below)]


SIGNALS = Matrix(
    "signals",
    "an interrupt at any instant reverts, reports and exits with 3",
    _signal_trials,
    signalled,
    lambda rows: _spread(rows, "ended_s"),
)
