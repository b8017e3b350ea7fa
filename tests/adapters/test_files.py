"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest

from chaos.adapters.files import LocalFiles


def test_what_is_written_is_read_and_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    LocalFiles().write_atomic(path, "grüße\n")
    assert LocalFiles().read(path) == "grüße\n"
    assert LocalFiles().names(path.parent) == ("b.json",)


def test_a_file_that_is_not_there_reads_as_none_and_removes_twice(tmp_path: Path) -> None:
    assert LocalFiles().read(tmp_path / "x") is None
    LocalFiles().remove(tmp_path / "x")
    assert LocalFiles().names(tmp_path / "none") == ()


def test_a_write_that_fails_keeps_the_old_text_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "x"
    LocalFiles().write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        LocalFiles().write_atomic(path, "new \ud800")
    assert LocalFiles().read(path) == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_draft_of_a_writer_that_died_is_no_file(tmp_path: Path) -> None:
    (tmp_path / ".x.1-2.draft").write_text("half")
    assert LocalFiles().names(tmp_path) == ()


def test_others_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        LocalFiles().write_atomic(tmp_path / "x", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644


def test_a_sweep_removes_only_drafts_of_the_named_files(tmp_path: Path) -> None:
    keep = ["run-1-a.json", ".run-2-a.json.7-1.draft", ".run-1-note"]
    for name in [*keep, ".run-1-a.json.7-1.draft", ".run-1-b.json.7-2.draft"]:
        (tmp_path / name).write_text("half")
    LocalFiles().sweep(tmp_path, "run-1-")
    assert sorted(keep) == sorted(p.name for p in tmp_path.iterdir())
    LocalFiles().sweep(tmp_path / "nowhere", "run-1-")


def test_a_write_through_goes_into_the_very_file(tmp_path: Path) -> None:
    path = tmp_path / "knob"
    with pytest.raises(FileNotFoundError):
        LocalFiles().write_through(path, "1")
    path.write_text("0")
    number = path.stat().st_ino
    LocalFiles().write_through(path, "1")
    assert ("1", number) == (path.read_text(), path.stat().st_ino)


def test_a_folder_is_removed_when_nothing_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    LocalFiles().make_folder(folder)
    LocalFiles().make_folder(folder)
    (folder / "x").touch()
    assert not LocalFiles().remove_folder(folder)
    (folder / "x").unlink()
    assert LocalFiles().remove_folder(folder)
    assert LocalFiles().remove_folder(folder)


def test_a_trial_tells_whether_a_block_can_be_written_and_leaves_no_trace(tmp_path: Path) -> None:
    assert 0 == LocalFiles().trial(tmp_path)
    assert [] == [*tmp_path.iterdir()]
    assert errno.ENOENT == LocalFiles().trial(tmp_path / "none")


def test_a_file_of_a_process_that_has_ended_is_not_there() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert LocalFiles().read(Path(f"/proc/{process.pid}/limits")) is None
    assert () == LocalFiles().names(Path(f"/proc/{process.pid}/fdinfo"))
