"""A saboteur does harm while its warrant is a file, and leaves nothing however it ends."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from chaos.ports import ProcessId, Ran
from tests.saboteurs.started import PROCESSES, begin, family, soon


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
    assert ",cpu," in begin(ordered(tmp_path), "nothing").errors


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
