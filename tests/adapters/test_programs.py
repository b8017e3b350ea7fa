"""Programs are run to their end, and what cannot be run is told, never raised."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from pathlib import Path

from chaos.adapters.machine import has
from chaos.adapters.programs import LocalPrograms
from chaos.faults.grips.needs import TRACE, module, tool
from chaos.ports import Need, Ran


def run(*words: str, timeout_s: float = 10.0) -> Ran:
    return asyncio.run(LocalPrograms().run(words, timeout_s=timeout_s))


def test_a_program_tells_its_status_and_both_outputs() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert Ran(3, "out\n", "err\n") == run(sys.executable, "-c", code)


def test_a_program_that_is_not_there_is_told() -> None:
    ran = run("no-such-program")
    assert (None, True) == (ran.status, "no-such-program could not be started" in ran.errors)


def test_a_program_that_does_not_end_is_killed() -> None:
    ran = run("sleep", "60", timeout_s=0.05)
    assert Ran(None, "", "sleep did not end within 0.05s") == ran


def test_needs_are_looked_for_where_they_are_found() -> None:
    assert has(tool("sh"))
    assert not has(tool("no-such-program"))
    assert has(Need("module", "json", ""))
    assert not has(module("no_such_module", "nothing"))
    assert has(Need("path", "/dev/null", ""))
    assert not has(Need("path", "/dev/no-such-device", ""))
    assert has(Need("machine", platform.machine(), ""))
    assert not has(Need("machine", "pdp11", ""))


def test_leave_to_trace_is_there_for_root_and_where_nothing_forbids_it() -> None:
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    free = not scope.exists() or scope.read_text().strip() == "0"
    assert has(TRACE) >= (free or os.geteuid() == 0)
