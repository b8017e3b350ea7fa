"""The supervisor's folders."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from target_stack.process import Account
from target_stack.workspace import Occupied, base_folder, open_workspace, scratch_left_in


def test_closing_leaves_only_the_logs(tmp_path):
    workspace = open_workspace(tmp_path / "state", None)
    workspace.log("a").write_text("x")
    workspace.folder("data").joinpath("file").write_text("x")
    scratch = workspace.scratch
    workspace.close()
    assert not scratch.exists()
    assert [p.name for p in (tmp_path / "state").iterdir()] == ["logs"]


def test_the_state_folder_is_private(tmp_path):
    workspace = open_workspace(tmp_path / "state", None)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE(workspace.folder("data").stat().st_mode) == 0o700
    workspace.close()


def test_the_token_of_the_admin_apis_is_its_owners_alone_and_new_in_every_life(tmp_path):
    tokens = []
    for _ in range(2):
        workspace = open_workspace(tmp_path, None)
        assert stat.S_IMODE(workspace.token_file.stat().st_mode) == 0o600
        tokens.append(workspace.token_file.read_text())
        workspace.close()
        assert not workspace.token_file.exists()
    assert [65, 65] == [len(token) for token in tokens]
    assert tokens[0] != tokens[1]


def test_two_supervisors_cannot_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("target_stack.workspace._LOCK_PATIENCE_S", 0.0)
    workspace = open_workspace(tmp_path, None)
    with pytest.raises(Occupied, match=f"pid {os.getpid()}"):
        open_workspace(tmp_path, None)
    workspace.close()
    open_workspace(tmp_path, None).close()


def test_what_a_killed_supervisor_left_is_removed_by_the_next(tmp_path):
    killed = open_workspace(tmp_path, None)
    killed.folder("data").joinpath("file").write_text("x")
    os.close(killed.lock)  # as the kernel does for a killed process
    workspace = open_workspace(tmp_path, None)
    assert not killed.scratch.exists()
    workspace.close()


def test_a_folder_that_is_not_ours_by_name_is_never_removed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "scratch").write_text(str(tmp_path / "precious"))
    assert scratch_left_in(tmp_path) is None


def test_the_base_folder_is_one_that_the_account_can_reach(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    stranger = Account(12345, 12345)
    assert base_folder(stranger, [closed, Path("/")]) == Path("/")
    assert base_folder(None, [closed]) == closed
    with pytest.raises(OSError, match="set TMPDIR"):
        base_folder(stranger, [closed])
