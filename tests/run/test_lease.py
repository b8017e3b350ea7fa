"""A lease is on disk before the harm, tells all that a revert needs, and ends by the clock of its own boot."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from chaos.adapters.files import LocalFiles
from chaos.run.lease import Lease, LeaseStore
from chaos.testing.files import InMemoryFiles

FOLDER = Path("/state/leases")

LEASE = Lease(
    id="run-1-outage",
    run="run-1",
    run_dir="/runs/run-1",
    stack="bundled",
    fault="outage",
    kind="process_kill",
    targets=("vector-store",),
    undo={"hold": "h1", "targets": []},
    boot_id="boot-1",
    granted_at=100.0,
    lease_until=130.0,
)


def _store(**changes: object) -> LeaseStore:
    store = LeaseStore(FOLDER, InMemoryFiles())
    store.grant(dataclasses.replace(LEASE, **changes))
    return store


def test_a_granted_lease_reads_back_as_it_was() -> None:
    assert _store().list().leases == (LEASE,)


def test_the_file_has_the_agreed_shape() -> None:
    store = _store()
    record = json.loads(store.files.read(FOLDER / "run-1-outage.json"))
    assert set(record) == {
        *("version", "id", "run", "run_dir", "stack", "fault", "targets"),
        *("undo", "boot_id", "granted_at", "lease_until"),
    }
    assert record["version"] == 1
    assert record["fault"] == {"name": "outage", "kind": "process_kill"}


def test_leases_are_found_by_run_and_by_stack_oldest_first() -> None:
    store = _store()
    other = dataclasses.replace(LEASE, id="a", run="run-2", stack="other", granted_at=90.0)
    store.grant(other)
    assert store.list().leases == (other, LEASE)
    assert store.list(run="run-1").leases == (LEASE,)
    assert store.list(stack="other").leases == (other,)
    assert store.list(run="run-1", stack="other").leases == ()


def test_removing_twice_is_safe() -> None:
    store = _store()
    assert store.holds(LEASE.id)
    store.remove(LEASE.id)
    store.remove(LEASE.id)
    assert not store.holds(LEASE.id)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"version": 2}', '{"version": 1}', '{"version": 1, "fault": 3}']
)
def test_a_damaged_file_is_told_and_hides_no_other_lease(text: str) -> None:
    store = _store()
    store.files.write_atomic(FOLDER / "torn.json", text)
    stored = store.list(run="run-1")
    assert stored.leases == (LEASE,)
    assert [damaged.path for damaged in stored.damaged] == [FOLDER / "torn.json"]


def test_files_that_are_no_leases_are_left_alone() -> None:
    store = _store()
    store.files.write_atomic(FOLDER / "README", "not a lease")
    assert store.list().damaged == ()


def test_a_lease_ends_at_its_monotonic_time() -> None:
    assert not LEASE.ended(129.9, "boot-1")
    assert LEASE.ended(130.0, "boot-1")


def test_a_lease_of_another_boot_has_ended_whatever_the_clock_says() -> None:
    assert LEASE.ended(0.0, "boot-2")


@pytest.mark.parametrize("bad", ["", "../x", "a/b", ".hidden"])
def test_an_id_that_is_no_file_name_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="cannot be a file name"):
        _store(id=bad)


def test_an_empty_state_folder_holds_no_leases(tmp_path: Path) -> None:
    assert LeaseStore(tmp_path / "none", LocalFiles()).list().leases == ()


def test_the_folder_is_made_by_the_first_lease(tmp_path: Path) -> None:
    store = LeaseStore(tmp_path / "deep" / "leases", LocalFiles())
    store.grant(LEASE)
    assert store.list().leases == (LEASE,)
