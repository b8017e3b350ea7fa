"""A saboteur does harm while its warrant is a file, and leaves nothing however it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

from chaos.adapters.processes import ProcFs
from chaos.adapters.programs import LocalPrograms
from chaos.ports import ProcessId, Ran

PROCESSES = ProcFs()


def begin(warrant: Path, program: str = "cpu") -> Ran:
    return asyncio.run(LocalPrograms().sabotage(program, warrant))


def family(warrant: Path) -> list[ProcessId]:
    """The saboteur, then its companions, which have the same command line."""
    found = PROCESSES.with_argument(str(warrant))
    return sorted(found, key=lambda each: (each not in _parents(found), each.pid))


def _parents(found: tuple[ProcessId, ...]) -> set[ProcessId]:
    return {each for each in found if set(PROCESSES.children(each)) & set(found)}


def soon(held: Callable[[], bool], within_s: float = 3.0) -> bool:
    give_up = time.monotonic() + within_s
    while not held() and time.monotonic() < give_up:
        time.sleep(0.01)
    return held()


def ordered(folder: Path, **orders: object) -> Path:
    warrant = folder / "warrant"
    warrant.write_text(json.dumps(orders))
    return warrant


def test_it_is_there_when_the_start_returns_and_leaves_with_its_warrant(tmp_path: Path) -> None:
    warrant = ordered(tmp_path, cores=2, share=0.1)
    assert Ran(0, "", "") == begin(warrant)
    assert 3 == len(family(warrant))
    warrant.unlink()
    assert soon(lambda: family(warrant) == [])


def test_its_companions_die_with_it_when_it_is_killed(tmp_path: Path) -> None:
    warrant = ordered(tmp_path, cores=2, share=0.1)
    assert Ran(0, "", "") == begin(warrant)
    PROCESSES.signal(family(warrant)[0], signal.SIGKILL)
    assert soon(lambda: family(warrant) == [])


def test_a_start_after_the_revert_does_nothing(tmp_path: Path) -> None:
    ran = begin(tmp_path / "warrant")
    assert (1, True) == (ran.status, "reverted before it began" in ran.errors)
    assert [] == family(tmp_path / "warrant")


def test_orders_that_cannot_be_carried_out_are_told(tmp_path: Path) -> None:
    ran = begin(ordered(tmp_path, cores="many", share=1))
    assert (1, True) == (ran.status, "many" in ran.errors)


def test_an_unknown_program_names_those_there_are(tmp_path: Path) -> None:
    assert "{cpu" in begin(ordered(tmp_path), "nothing").errors


def test_memory_is_taken_from_nobody_who_needs_it(tmp_path: Path) -> None:
    warrant = ordered(tmp_path, bytes=32 << 20, reserve=0)
    assert Ran(0, "", "") == begin(warrant, "memory")
    (hog,) = family(warrant)
    assert 32 << 10 <= _kib(hog, "VmRSS")
    assert "1000" == Path(f"/proc/{hog.pid}/oom_score_adj").read_text().strip()
    warrant.unlink()
    assert soon(lambda: family(warrant) == [])
    ran = begin(ordered(tmp_path, bytes=32 << 20, reserve=1 << 60), "memory")
    assert (1, True) == (ran.status, "take a smaller share" in ran.errors)


def _kib(process: ProcessId, name: str) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
