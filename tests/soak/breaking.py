"""The harness itself is killed or interrupted at random instants; the stack must be whole and the evidence kept."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence

from by_undo import ALL
from drill import Drill, until_whole
from matrix import Figure, Found, Matrix, Row, Trial, ended

from chaos.journal.reader import read_journal
from chaos.load.report import quantile

KILLS_EACH = 20
SIGNALS_EACH = 5
WHOLE_WITHIN_S = 2.0
TWO_AT_MOST_APART_S = 0.3

# Of every twenty kills two fall into the baseline, two around the inject (armed 1 s before it), the rest come after it.
_INSTANTS = {0: ("load_started", 1.5), 1: ("load_started", 1.5), 2: ("lease_granted", 1.2), 3: ("lease_granted", 1.2)}
_IN_FORCE = ("fault_injected", 3.0)

ASKED = (("SIGINT", 1), ("SIGINT", 2), ("SIGTERM", 1))


def _kill_trials() -> list[Trial]:
    return [Trial(f"{fault}/{number:02}", number) for number in range(KILLS_EACH) for fault in ALL]


def killed(trial: Trial, drill: Drill) -> Found:
    """SIGKILL one run; how long until nothing is broken, and whether its evidence can be judged."""
    fault, dice = trial.name.partition("/")[0], random.Random(trial.name)
    record, spread_s = _INSTANTS.get(trial.seed, _IN_FORCE)
    delay_s, began = dice.uniform(0, spread_s), time.time()
    with ended(drill.begin_run(fault, "--seed", str(trial.seed))) as process:
        drill.wait_for(record, process, began)
        time.sleep(delay_s)
        process.kill()
        took_s, broken = until_whole(drill, 10)
    facts = {"instant": f"{record}+{delay_s:.3f}s", "whole_s": round(took_s, 3), "broken": broken}
    wrong = _broken(took_s, broken) or _evidence_trouble(drill)
    if wrong is None and trial.seed % 5 == 4:
        wrong = _next_run_trouble(drill)
    return Found(wrong, facts)


def _broken(took_s: float, broken: list[str]) -> str | None:
    if broken:
        return f"still broken after {took_s:.1f}s: {broken}"
    return f"whole only after {took_s:.2f}s" if took_s > WHOLE_WITHIN_S else None


def _evidence_trouble(drill: Drill) -> str | None:
    """The journal is whole up to its last record, and a judge says what happened."""
    run_dir = drill.last_run()
    read = read_journal((run_dir / "journal.jsonl").read_bytes())
    strange = [str(problem) for problem in read.problems if problem.kind not in {"interrupted", "torn"}]
    if strange or not read.records:
        return f"journal: {strange or 'empty'}"
    judged = drill.call("judge", str(run_dir))
    if judged.returncode != 2 or "interrupted" not in judged.stdout:
        return f"judge gave {judged.returncode}: {judged.stdout}{judged.stderr}"
    return None


def _next_run_trouble(drill: Drill) -> str | None:
    done = drill.run("noop")
    return None if done.returncode == 0 else f"the next run gave {done.returncode}: {done.stdout}{done.stderr}"


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


def _spread(rows: Sequence[Row], fact: str, below: float | None = None) -> list[Figure]:
    values = [row[fact] for row in rows if fact in row]
    return [Figure("p50", quantile(values, 0.5)), Figure("max", max(values, default=None), below=below)]


KILLS = Matrix(
    "kills",
    f"SIGKILL at any instant: nothing is broken {WHOLE_WITHIN_S:.0f}s later, and the evidence stays",
    _kill_trials,
    killed,
    lambda rows: _spread(rows, "whole_s", below=WHOLE_WITHIN_S),
)
SIGNALS = Matrix(
    "signals",
    "an interrupt at any instant reverts, reports and exits with 3",
    _signal_trials,
    signalled,
    lambda rows: _spread(rows, "ended_s"),
)
