"""PostgreSQL's commands, account and reachability."""

from __future__ import annotations

import os

import pytest

from target_stack.process import Account
from target_stack.vector_store.accounts import can_reach, reachable_copy, unprivileged
from target_stack.vector_store.cluster import Cluster, drop_shared_memory, find_installation
from target_stack.vector_store.store import vector_literal

STRANGER = Account(12345, 12345)


def test_the_server_listens_on_loopback_only_and_has_no_unix_socket(tmp_path):
    command = Cluster(tmp_path / "pg", tmp_path / "data").serve(21543)
    assert command[:5] == [str(tmp_path / "pg/bin/postgres"), "-D", str(tmp_path / "data"), "-p", "21543"]
    assert "listen_addresses=127.0.0.1" in command
    assert "unix_socket_directories=" in command


def test_settings_of_its_own_come_last_and_so_count(tmp_path):
    command = Cluster(tmp_path, tmp_path, settings={"synchronous_commit": "off"}).serve(21543)
    assert command[-2:] == ["-c", "synchronous_commit=off"]
    assert not any("synchronous_commit" in word for word in Cluster(tmp_path, tmp_path).serve(21543))


def test_a_cluster_is_made_once_initdb_has_finished(tmp_path):
    cluster = Cluster(tmp_path, tmp_path)
    assert not cluster.is_made()
    cluster.mark_made()
    assert cluster.is_made()


def test_the_installation_holds_the_server():
    assert os.access(find_installation() / "bin" / "postgres", os.X_OK)


def test_a_folder_without_a_pid_file_left_nothing_behind(tmp_path):
    assert drop_shared_memory(tmp_path) is False


def test_only_root_needs_another_account():
    assert unprivileged(1000) is None
    account = unprivileged(0)
    assert account is not None
    assert account.uid != 0


def installation_in_a_closed_home(folder):
    """As a wheel lays it out: a package, and the libraries that it finds beside itself."""
    source = folder / "home" / "package" / "pginstall"
    (source / "bin").mkdir(parents=True)
    (source / "bin" / "postgres").write_text("x")
    libraries = folder / "home" / "package.libs"
    libraries.mkdir()
    (libraries / "libpq.so").write_text("y")
    (folder / "home").chmod(0o700)
    return source


def test_binaries_below_a_closed_folder_are_copied_once_to_a_place_that_can_be_reached(tmp_path):
    source = installation_in_a_closed_home(tmp_path)
    below = tmp_path / "cache"
    below.mkdir(mode=0o755)
    assert not can_reach(source, STRANGER)
    copy = reachable_copy(source, STRANGER, below)
    assert (copy / "bin" / "postgres").read_text() == "x"
    assert (copy / "../../package.libs/libpq.so").resolve().read_text() == "y"
    assert reachable_copy(source, STRANGER, below) == copy
    assert [path.name for path in below.iterdir()] == [copy.parents[1].name]


def test_a_copy_that_a_stranger_could_have_written_is_not_trusted(tmp_path):
    source = installation_in_a_closed_home(tmp_path)
    below = tmp_path / "cache"
    below.mkdir()
    planted = reachable_copy(source, STRANGER, below)
    (planted / "evil").touch()
    planted.parents[1].chmod(0o777)
    assert reachable_copy(source, STRANGER, below) != planted


@pytest.mark.parametrize(("vector", "text"), [((1.0, 0.5), "[1,0.5]"), ((-1e-9,), "[-1e-09]"), ((), "[]")])
def test_a_vector_is_written_as_pgvector_reads_it(vector, text):
    assert vector_literal(vector) == text
