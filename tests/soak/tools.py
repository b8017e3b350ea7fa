"""The tools are killed at 100 random instants: every call has its effect once, its first result, and its audit line."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from drill import ROOT, Drill
from matrix import Figure, Found, Matrix, Row, Trial

sys.path.insert(0, str(ROOT / "tests" / "target_stack" / "tools"))

from killing import killed_while_used, wrong_after
from shop import AGENTS, Server

LIVES = 10
KILLS_EACH = 10
CALLERS = 4


def killed(trial: Trial, drill: Drill) -> Found:
    """Ten kills under four pairs of callers; each pair asks for the same thing at the same time."""
    del drill
    with TemporaryDirectory(prefix="brownout-tools-") as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        server = Server({"listen": listen, "data_dir": str(Path(folder)), "agents": AGENTS}).start()
        try:
            results = asyncio.run(killed_while_used(server, KILLS_EACH, CALLERS, random.Random(trial.name)))
            wrong = wrong_after(server, results)
        finally:
            server.end()
    return Found(wrong, {"kills": KILLS_EACH, "effects": len(results)})


def _sums(rows: Sequence[Row]) -> list[Figure]:
    return [Figure(fact, float(sum(row.get(fact, 0) for row in rows)), unit="") for fact in ("kills", "effects")]


TOOLS = Matrix(
    "tools",
    "SIGKILL of the tools at any instant: every call has its effect exactly once and stands in the audit",
    lambda: [Trial(f"life-{number:02}", number) for number in range(LIVES)],
    killed,
    _sums,
    stack=False,
)
