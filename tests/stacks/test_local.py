"""A stack by its state folder: nobody but its own supervisor is ever taken for it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.adapters.processes import ProcFs
from chaos.ports import Host
from chaos.stacks.local import LocalStack, StackTrouble, start


class OnlyProcesses:
    """As much of a host as the search for a supervisor needs."""

    processes = ProcFs()


HOST = cast("Host", cast("Any", OnlyProcesses()))


def test_a_state_folder_that_lies_too_deep_for_a_socket_is_refused_with_what_to_do(tmp_path: Path) -> None:
    deep = LocalStack(tmp_path / ("x" * 107))
    with pytest.raises(StackTrouble, match="set BROWNOUT_STATE to a folder with a shorter path") as trouble:
        start(deep, "embedded", (), dies_with_us=True)
    assert (64, False) == (trouble.value.exit_code, deep.folder.exists())


def test_a_number_that_a_dead_supervisor_left_names_nobody(tmp_path: Path) -> None:
    """After a reboot it may be anybody's, and `brownout down` would end that process."""
    (tmp_path / "supervisor.pid").write_text(f"{os.getpid()}\n")
    assert LocalStack(tmp_path).supervisor(HOST) is None


def test_a_supervisor_that_lives_keeps_its_file_locked_and_is_found(tmp_path: Path) -> None:
    with (tmp_path / "supervisor.pid").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{os.getpid()}\n")
        file.flush()
        found = LocalStack(tmp_path).supervisor(HOST)
    assert ProcFs().identify(os.getpid()) == found


def test_a_folder_without_a_stack_has_no_supervisor(tmp_path: Path) -> None:
    assert LocalStack(tmp_path / "nowhere").supervisor(HOST) is None


@pytest.mark.parametrize(
    ("proxy", "remedy"),
    [
        ("envoy", "give brownout, toxiproxy or toxiproxy://HOST:PORT"),
        ("toxiproxy://somewhere", "give brownout, toxiproxy or toxiproxy://HOST:PORT"),
        ("toxiproxy", "`make tools` builds one in build/tools/toxiproxy"),
    ],
)
def test_a_proxy_that_cannot_be_had_is_bad_input_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str, remedy: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackTrouble) as trouble:
        start(LocalStack(tmp_path / "stack"), "embedded", (), dies_with_us=True, proxy=proxy)
    assert 64 == trouble.value.exit_code
    assert remedy in str(trouble.value)
