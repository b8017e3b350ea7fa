"""Calls on files below a folder fail or wait while the saboteur is there, and nobody is hurt when it is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.saboteurs.syscalls import is_below, numbers
from tests.saboteurs.started import PROCESSES, begin, family, soon
from tests.saboteurs.victim import Victim

FINE = {"open": "ok", "write": "ok", "fsync": "ok", "read": "ok"}


@pytest.fixture
def victim() -> Iterator[Victim]:
    with Victim() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def start(victim: Victim, folder: Path, *operations: str, share: float = 1, **harm: object) -> Path:
    """The warrant of a saboteur that is in force."""
    warrant = folder.parent / "warrant"
    orders = {"processes": victim.processes, "folders": [str(folder)], "operations": operations, "share": share}
    warrant.write_text(json.dumps({**orders, "seed": 1, **harm}))
    ran = begin(warrant, "io_calls")
    assert ran.status == 0, ran.errors
    return warrant


def end(warrant: Path) -> None:
    warrant.unlink()
    assert soon(lambda: not family(warrant))


def kill(warrant: Path) -> None:
    """The saboteur and its tracer, as a revert does."""
    for process in family(warrant):
        PROCESSES.signal(process, signal.SIGKILL)
    assert soon(lambda: not family(warrant))
    warrant.unlink()


def outcome(told: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in told.items() if key != "took_s"}


def heard(victim: Victim, signals: int) -> bool:
    return soon(lambda: victim.ask("signals") == signals)


@pytest.mark.parametrize("operation", ["write", "fsync", "read"])
def test_the_chosen_operation_fails_below_the_folder_and_nothing_else_does(
    victim: Victim, folder: Path, operation: str
) -> None:
    warrant = start(victim, folder, operation, errno=28)
    assert {**FINE, operation: "ENOSPC"} == outcome(victim.ask("use", folder / "file"))
    assert outcome(victim.ask("use", folder.parent / "file")) == FINE
    end(warrant)
    assert outcome(victim.ask("use", folder / "file")) == FINE


def test_an_open_fails_by_the_path_that_is_asked_for_whatever_it_is_called(victim: Victim, folder: Path) -> None:
    (folder.parent / "other").symlink_to(folder)
    start(victim, folder, "open", errno=24)
    assert victim.ask("use", folder.parent / "other" / "file") == {"open": "EMFILE"}
    assert victim.ask("use", os.path.relpath(folder / "file")) == {"open": "EMFILE"}


def test_a_later_child_is_hit_as_well(victim: Victim, folder: Path) -> None:
    start(victim, folder, "write", errno=5)
    assert victim.ask("child", folder / "file")["write"] == "EIO"


def test_a_share_of_calls_is_hit(victim: Victim, folder: Path) -> None:
    start(victim, folder, "write", share=0.3, errno=5)
    failed = sum(victim.ask("use", folder / "file")["write"] == "EIO" for _ in range(200))
    assert 35 < failed < 90


def test_a_delayed_call_holds_its_thread_and_no_other(victim: Victim, folder: Path) -> None:
    start(victim, folder, "fsync", delay_s=0.4)
    before = victim.ask("ticks")
    assert victim.ask("use", folder / "file")["took_s"] >= 0.4
    assert victim.ask("ticks") > before + 20


def test_what_is_held_goes_on_at_once_when_the_saboteur_is_killed(victim: Victim, folder: Path) -> None:
    warrant = start(victim, folder, "fsync", delay_s=60)
    assert victim.process.stdin
    victim.process.stdin.write(json.dumps(["use", str(folder / "file")]) + "\n")
    victim.process.stdin.flush()
    time.sleep(0.1)
    kill(warrant)
    assert victim.process.stdout
    assert outcome(json.loads(victim.process.stdout.readline())) == FINE


def test_a_held_process_can_be_killed(victim: Victim, folder: Path) -> None:
    start(victim, folder, "fsync", delay_s=60)
    assert victim.process.stdin
    victim.process.stdin.write(json.dumps(["use", str(folder / "file")]) + "\n")
    victim.process.stdin.flush()
    victim.process.kill()
    assert victim.process.wait(3) == -signal.SIGKILL


def test_a_stopped_process_stays_stopped_until_it_is_woken_also_when_the_saboteur_is_killed(
    victim: Victim, folder: Path
) -> None:
    warrant = start(victim, folder, "write", errno=5)
    victim.process.send_signal(signal.SIGSTOP)
    assert soon(lambda: PROCESSES.state(victim.id) in ("T", "t"))
    time.sleep(0.1)
    assert PROCESSES.state(victim.id) in ("T", "t")
    kill(warrant)
    time.sleep(0.05)
    assert PROCESSES.state(victim.id) == "T"
    victim.process.send_signal(signal.SIGCONT)
    assert victim.ask("ready") == "ready"


def test_a_process_that_is_stopped_already_is_traced_as_it_is(victim: Victim, folder: Path) -> None:
    victim.process.send_signal(signal.SIGSTOP)
    assert soon(lambda: PROCESSES.state(victim.id) == "T")
    start(victim, folder, "write", errno=5)
    time.sleep(0.05)
    assert PROCESSES.state(victim.id) in ("T", "t")
    victim.process.send_signal(signal.SIGCONT)
    assert victim.ask("use", folder / "file")["write"] == "EIO"


def test_no_signal_is_lost_when_the_saboteur_is_killed_again_and_again(victim: Victim, folder: Path) -> None:
    dice, sent = random.Random(3), 0
    for _ in range(8):
        warrant = start(victim, folder, "write", errno=5)
        for _ in range(dice.randrange(1, 6)):
            victim.process.send_signal(signal.SIGUSR1)
            sent += 1
            assert heard(victim, sent)
        victim.process.send_signal(signal.SIGUSR1)
        sent += 1
        kill(warrant)
        assert heard(victim, sent)


def test_a_second_tracer_is_refused_in_words_that_say_why(victim: Victim, folder: Path) -> None:
    warrant = start(victim, folder, "write", errno=5)
    other = folder.parent / "other"
    other.write_text(warrant.read_text())
    ran = begin(other, "io_calls")
    assert (1, True) == (ran.status, "traces it, and there can be but one" in ran.errors)
    assert not family(other)


def test_a_namesake_of_a_process_that_is_gone_is_left_alone(victim: Victim, folder: Path) -> None:
    orders = {"processes": [[victim.id.pid, 1]], "folders": [str(folder)], "operations": ["write"], "share": 1}
    warrant = folder.parent / "warrant"
    warrant.write_text(json.dumps({**orders, "errno": 5}))
    assert "none of its processes" in begin(warrant, "io_calls").errors


def test_a_folder_holds_itself_and_what_is_in_it_and_no_neighbour() -> None:
    assert [True, True, False, True] == [
        is_below(*each)
        for each in (("/data", "/data"), ("/data/a", "/data"), ("/database", "/data"), ("/anything", "/"))
    ]


def test_every_operation_has_calls_of_its_own() -> None:
    each = [numbers((operation,)) for operation in ("open", "read", "write", "fsync")]
    assert sum(map(len, each)) == len(frozenset().union(*each))
