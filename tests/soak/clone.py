"""What a newcomer does: clone into an empty folder, `make demo`, and look at what is there and what is left."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from drill import ROOT, Drill
from harm import ours
from matrix import Figure, Found, Matrix, Row, Trial

DEMO_WITHIN_S = 240.0
REPORTS = 5


def newcomer(trial: Trial, drill: Drill) -> Found:
    """Install and demo in a fresh clone; five reports, exit 0, no process and no lease left."""
    del trial
    clone = drill.folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=120)
    install_s, _ = _made(clone, drill, "setup")
    demo_s, done = _made(clone, drill, "demo")
    reports = sorted((clone / "runs").rglob("report.md"))
    facts = {"install_s": round(install_s, 1), "demo_s": round(demo_s, 1), "reports": len(reports)}
    return Found(_wrong(done, reports, drill), facts)


def _made(clone: Path, drill: Drill, target: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    began = time.monotonic()
    done = subprocess.run(
        ["make", target], cwd=clone, env=drill.environment(), capture_output=True, text=True, timeout=900, check=False
    )
    return time.monotonic() - began, done


def _wrong(done: subprocess.CompletedProcess[str], reports: Sequence[Path], drill: Drill) -> str | None:
    if done.returncode:
        return f"make demo gave {done.returncode}: {done.stdout[-1500:]} {done.stderr[-500:]}"
    if len(reports) != REPORTS:
        return f"{len(reports)} reports"
    left = [*ours(str(drill.state)), *drill.leases()]
    return f"left: {left}" if left else None


def _figures(rows: Sequence[Row]) -> list[Figure]:
    demo_s = max((row["demo_s"] for row in rows if "demo_s" in row), default=None)
    install_s = max((row["install_s"] for row in rows if "install_s" in row), default=None)
    return [Figure("install", install_s), Figure("demo", demo_s, below=DEMO_WITHIN_S)]


CLONE = Matrix(
    "clone",
    "`make demo` in a fresh clone ends well in four minutes and leaves five reports and nothing else",
    lambda: [Trial("clone/0", 0)],
    newcomer,
    _figures,
    stack=False,
)
