"""How soon an abort with ten faults in force has cleared all of them."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

from drill import Drill, until_whole
from matrix import Figure, Found, Matrix, Row, Trial, ended

from chaos.load.report import quantile

ABORTS = 100
ALL_CLEAR_WITHIN_S = 0.1
TEN = 10


def aborted(trial: Trial, drill: Drill) -> Found:
    """SIGINT with ten faults in force; the journal tells how soon the last was reverted."""
    began = time.time()
    with ended(drill.begin_run("ten", "--seed", str(trial.seed))) as process:
        drill.wait_for("fault_injected", process, began)
        give_up = time.monotonic() + 20
        while time.monotonic() < give_up and len(_times(drill, "fault_injected")) < TEN:
            time.sleep(0.05)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    injected, reverted = _times(drill, "fault_injected"), _times(drill, "fault_reverted")
    took_s, broken = until_whole(drill, 5)
    if broken or process.returncode != 3 or len(injected) != TEN or len(reverted) < TEN:
        counts = f"{len(injected)} injected, {len(reverted)} reverted"
        return Found(f"exit code {process.returncode}, {counts}, broken {broken}: {out}{err}")
    return Found(None, {"clear_s": round(max(reverted) - sent, 4), "whole_s": round(took_s, 3)})


def _times(drill: Drill, kind: str) -> list[float]:
    """When such records were written, on the clock of this machine."""
    lines = drill.journal()
    return [lines[0]["origin"] + line["t"] for line in lines if line["kind"] == kind]


def _abort_figures(rows: Sequence[Row]) -> list[Figure]:
    clear = [row["clear_s"] for row in rows if "clear_s" in row]
    return [
        Figure("p50", quantile(clear, 0.5)),
        Figure("p99", quantile(clear, 0.99), below=ALL_CLEAR_WITHIN_S),
        Figure("max", max(clear, default=None)),
    ]


ABORT = Matrix(
    "abort",
    "an abort with ten faults in force clears all of them in less than 100 ms",
    lambda: [Trial(f"abort/{number:03}", number) for number in range(ABORTS)],
    aborted,
    _abort_figures,
)
