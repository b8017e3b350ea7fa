"""What io_error and io_delay cost calls that they do not hit, and clock_skew a look at the clock. Prints microseconds.

    python benchmarks/tracing.py

Each figure is the best of some rounds of a process that does nothing else, in one run: bare, with `io_calls` on a
folder that it never touches, with `clock`, and bare again. Linux on x86-64, with leave to trace.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.adapters.processes import ProcFs
from chaos.adapters.programs import LocalPrograms

_ROUNDS = 40
_SUBJECT = """
import os, sys, time
def each(work, many):
    began = time.perf_counter()
    for _ in range(many): work()
    return (time.perf_counter() - began) / many * 1e6
for _ in sys.stdin: print(each(os.getppid, 100), each(time.time, 1000), flush=True)
"""


def main() -> None:
    """Print one line for each state."""
    subject = subprocess.Popen(
        [sys.executable, "-c", _SUBJECT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        found = ProcFs().identify(subject.pid)
        processes = [[subject.pid, found.start_ticks if found else 0]]
        traced = {"folders": ["/nowhere"], "operations": ["write"], "share": 1, "errno": 5}
        print(f"{'':12}{'a call':>10}{'a look at the clock':>22}")
        print(_line("bare", subject))
        with tempfile.TemporaryDirectory() as folder:
            for program, orders in (("io_calls", traced), ("clock", {"mark": "bench", "ahead_s": 5, "drift": 0})):
                _begin(program, Path(folder) / program, {"processes": processes, **orders})
                print(_line(program, subject))
                (Path(folder) / program).unlink()
                time.sleep(0.2)
        print(_line("bare again", subject))
    finally:
        subject.kill()


def _begin(program: str, warrant: Path, orders: Mapping[str, Any]) -> None:
    warrant.write_text(json.dumps(orders))
    ran = asyncio.run(LocalPrograms().sabotage(program, warrant))
    if ran.status != 0:
        raise SystemExit(ran.errors)


def _line(name: str, subject: subprocess.Popen[str]) -> str:
    rounds = [_round(subject) for _ in range(_ROUNDS)]
    call, look = (min(column) for column in zip(*rounds, strict=True))
    return f"{name:12}{call:8.2f}us{look:20.3f}us"


def _round(subject: subprocess.Popen[str]) -> tuple[float, ...]:
    assert subject.stdin
    assert subject.stdout
    subject.stdin.write("go\n")
    subject.stdin.flush()
    return tuple(map(float, subject.stdout.readline().split()))


if __name__ == "__main__":
    main()
