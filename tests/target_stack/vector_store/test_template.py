"""A fresh cluster kept as an archive: the same files come out, owned by whoever will serve them."""

from __future__ import annotations

import os

import pytest

from target_stack.process import Account
from target_stack.vector_store.template import archive_of, pack, unpack


@pytest.fixture
def fresh(tmp_path):
    """A folder as initdb leaves it, in small."""
    data = tmp_path / "fresh"
    (data / "base" / "1").mkdir(parents=True, mode=0o700)
    (data / "PG_VERSION").write_text("16\n")
    (data / "base" / "1" / "112").write_bytes(bytes(range(256)))
    (data / "PG_VERSION").chmod(0o600)
    data.chmod(0o700)
    return data


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_packed_comes_out_again_and_nobody_else_may_enter(tmp_path, fresh):
    pack(fresh, tmp_path / "cache" / "c.tar")
    (tmp_path / "data").mkdir()
    assert unpack(tmp_path / "cache" / "c.tar", tmp_path / "data", None) is True
    assert files_of(fresh) == files_of(tmp_path / "data")
    assert 0o700 == (tmp_path / "data").stat().st_mode & 0o777
    assert 0o600 == (tmp_path / "data" / "PG_VERSION").stat().st_mode & 0o777


def test_without_an_archive_nothing_is_touched(tmp_path):
    (tmp_path / "data").mkdir()
    assert unpack(tmp_path / "none.tar", tmp_path / "data", None) is False
    assert [] == list((tmp_path / "data").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away; without root there is no other owner")
def test_a_root_gives_the_files_to_the_account_that_will_serve_them(tmp_path, fresh):
    pack(fresh, tmp_path / "c.tar")
    (tmp_path / "data").mkdir()
    unpack(tmp_path / "c.tar", tmp_path / "data", Account(12345, 12346))
    owners = {(path.stat().st_uid, path.stat().st_gid) for path in [tmp_path / "data", *(tmp_path / "data").rglob("*")]}
    assert {(12345, 12346)} == owners


def test_another_program_or_other_flags_make_another_archive_and_another_data_folder_does_not(tmp_path):
    (tmp_path / "old").write_text("a program")
    (tmp_path / "new").write_text("a longer program")
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    plain = archive_of([old, "-D", "a", "-U", "postgres"], tmp_path)
    assert plain == archive_of([old, "-D", "b", "-U", "postgres"], tmp_path)
    assert plain != archive_of([new, "-D", "a", "-U", "postgres"], tmp_path)
    assert plain != archive_of([old, "-D", "a", "-U", "other"], tmp_path)
