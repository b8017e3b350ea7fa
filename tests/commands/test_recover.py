"""`brownout recover` by hand: what a dead run left always, what a living run holds only when asked."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from chaos import cli
from chaos.adapters.clock import MonotonicClock
from chaos.adapters.files import LocalFiles
from chaos.adapters.processes import ProcFs
from chaos.run.lease import Lease, LeaseStore
from chaos.run.lock import hold
from chaos.stacks.local import LocalStack


class Scene:
    """A state folder with one noop in force, of the run `run-1`."""

    def __init__(self, state: Path) -> None:
        self.stack, self.marker = LocalStack(state / "stacks" / "bundled"), state / "marker"
        self.store = LeaseStore(state / "leases", LocalFiles())
        self.marker.write_text("m")
        undo, now = {"mark": "m", "marker": str(self.marker)}, time.monotonic()
        boot, folder = MonotonicClock().boot_id(), str(self.stack.folder)
        self.store.grant(Lease("l1", "run-1", "runs/x", folder, "control", "noop", (), undo, boot, now, now + 600))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("BROWNOUT_STATE", str(tmp_path))
    return Scene(tmp_path)


def test_what_a_dead_run_left_is_reverted(scene: Scene) -> None:
    assert 0 == cli.main(["recover"])
    assert (False, ()) == (scene.marker.exists(), scene.store.list().leases)


def test_a_fault_of_a_living_run_is_left_to_it_and_named(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    with hold(scene.stack.lock, "run-1", Path("runs/x"), ProcFs()):
        assert 0 == cli.main(["recover", "--json"])
    said = capsys.readouterr()
    assert {"version": 1, "recovered": [], "in_force": ["l1"]} == json.loads(said.out)
    assert ("run-1" in said.err, "brownout stop" in said.err, scene.marker.exists()) == (True, True, True)


def test_another_run_on_the_same_stack_keeps_nothing_of_a_dead_one(scene: Scene) -> None:
    with hold(scene.stack.lock, "run-2", Path("runs/y"), ProcFs()):
        assert 0 == cli.main(["recover"])
    assert not scene.marker.exists()


def test_a_fault_of_a_living_run_is_reverted_when_asked(scene: Scene) -> None:
    with hold(scene.stack.lock, "run-1", Path("runs/x"), ProcFs()):
        assert 0 == cli.main(["recover", "--live"])
    assert (False, ()) == (scene.marker.exists(), scene.store.list().leases)


def test_status_names_a_lease_that_nobody_can_read(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = scene.store.folder / "l2.json"
    damaged.write_text("{")
    assert 0 == cli.main(["status"])
    assert f"nobody can name: {damaged}" in capsys.readouterr().out
    assert 0 == cli.main(["status", "--json"])
    assert [str(damaged)] == [
        text.partition(": ")[0] for text in json.loads(capsys.readouterr().out)["unreadable_leases"]
    ]
