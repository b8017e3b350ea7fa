"""How soon an abort with ten faults in force has cleared all of them.

All clear is when every fault's own revert has returned *and* an outsider finds none in force: no toxic on any edge, no
edge down, no process stopped.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from drill import Drill, until_whole
from harm import process_state
from matrix import Figure, Found, Matrix, Row, Trial, ended

from chaos.load.report import quantile

ABORTS = 100
ALL_CLEAR_WITHIN_S = 0.1
TEN = 10
LOOK_EVERY_S = 0.01
"""Of the outsider: each look costs the proxy as much as a revert does."""


def aborted(trial: Trial, drill: Drill) -> Found:
    """SIGINT with ten faults in force; an outsider and the journal tell how soon none was."""
    began = time.time()
    with (
        ended(drill.begin_run("ten", "--seed", str(trial.seed))) as process,
        contextlib.closing(Outsider(drill)) as eye,
    ):
        drill.wait_for("fault_injected", process, began)
        give_up = time.monotonic() + 20
        while time.monotonic() < give_up and len(_times(drill, "fault_injected")) < TEN:
            time.sleep(0.05)
        harmed, sent = eye.in_force(), time.monotonic()
        process.send_signal(signal.SIGINT)
        while eye.in_force() and time.monotonic() < give_up:
            time.sleep(LOOK_EVERY_S)
        seen_clear = time.monotonic()
        out, err = process.communicate(timeout=40)
    injected, reverted = _times(drill, "fault_injected"), _times(drill, "fault_reverted")
    took_s, broken = until_whole(drill, 5)
    if broken or process.returncode != 3 or len(injected) != TEN or len(reverted) != TEN or len(harmed) < TEN:
        counts = f"{len(injected)} injected, {len(harmed)} seen, {len(reverted)} reverted"
        return Found(f"exit code {process.returncode}, {counts}, broken {broken}: {out}{err}")
    reverted_s, seen_s = max(reverted) - sent, seen_clear - sent
    facts = {"reverted_s": reverted_s, "seen_clear_s": seen_s, "clear_s": max(reverted_s, seen_s), "whole_s": took_s}
    return Found(None, {name: round(value, 4) for name, value in facts.items()})


class Outsider:
    """Looks at edges and processes of a stack over connections of its own, quickly enough to be asked every moment."""

    def __init__(self, drill: Drill) -> None:
        """Of the stack that is up."""
        targets = drill.inventory()["targets"]
        edges = [target["handles"]["proxy"] for target in targets]
        ((admin, token_file),) = {(edge["admin"], edge["token_file"]) for edge in edges}
        self._allowed = {"Authorization": f"Bearer {Path(token_file).read_text().strip()}"}
        self._pids = [pid for target in targets for pid in target["pids"]]
        self._line = http.client.HTTPConnection(admin, timeout=5)
        self._line.connect()

    def in_force(self) -> list[str]:
        """Every harm that there is now."""
        self._line.request("GET", "/proxies", headers=self._allowed)
        edges = json.loads(self._line.getresponse().read()).values()
        toxics = [f"{edge['name']}: {toxic['name']}" for edge in edges for toxic in edge["toxics"]]
        return toxics + [f"{pid} is stopped" for pid in self._pids if process_state(pid) == "T"]

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def _times(drill: Drill, kind: str) -> list[float]:
    """When such records were written, on the clock of this machine."""
    lines = drill.journal()
    return [lines[0]["origin"] + line["t"] for line in lines if line["kind"] == kind]


def _abort_figures(rows: Sequence[Row]) -> list[Figure]:
    clear = [row["clear_s"] for row in rows if "clear_s" in row]
    reverted = [row["reverted_s"] for row in rows if "reverted_s" in row]
    return [
        Figure("reverts alone p50", quantile(reverted, 0.5)),
        Figure("all clear p50", quantile(clear, 0.5)),
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
