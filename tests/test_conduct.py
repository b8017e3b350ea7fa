"""What a run makes for its stages out of a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parent / "run"))
from world import Toy, World, plan_of, planned

from chaos.conduct import _Run
from chaos.journal.record import ReadingRow
from chaos.run.lease import LeaseStore
from chaos.run.stop import Stop
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from tests.verdict.story import Story


def test_every_fault_of_a_run_gets_a_lease_of_its_own_whatever_it_is_called() -> None:
    """The lease is a file; a slash or a very long name must not keep a fault from being armed."""

    async def main() -> None:
        world = InMemoryHost()
        plan = plan_of(planned(Toy(World(), "a/b")), planned(Toy(World(), "x" * 300)))
        setting = SimpleNamespace(host=world.host, stack=SimpleNamespace(folder=Path("/stack")))
        run = _Run(plan, cast("Any", setting), Stop(), lambda _kind, _fields: None, "run-1", Path("/runs/run-1"))
        store = LeaseStore(Path("/leases"), world.files)
        for fault in plan.faults:
            store.grant(run._new_lease(fault, {}))
        assert ["a/b", "x" * 300] == [lease.fault for lease in store.list(run="run-1").leases]

    run_virtual(main)


def test_a_run_looks_ahead_only_where_that_is_wanted_and_then_sees_all_that_is_written_down(tmp_path: Path) -> None:
    async def main(wanted: bool) -> tuple[int, float] | None:
        world = InMemoryHost()
        setting = SimpleNamespace(host=world.host, stop_when_refuted=wanted)
        folder = tmp_path / str(wanted)
        folder.mkdir()
        run = _Run(
            plan_of(planned(Toy(World()))), cast("Any", setting), Stop(), lambda _kind, _fields: None, "run-1", folder
        )
        async with run._evidence(()) as evidence:
            evidence.journal.record("load_started", at=1.5, loads=[])
            evidence.reading(ReadingRow(1.0, "gateway", "events_last", 4.0))
            evidence.sample(next(Story().samples()))
            assert evidence.foregone(3.0) is None
            outlook = evidence.outlook
            return (outlook.samples, outlook.began_s) if outlook else None

    assert (1, 1.5) == run_virtual(lambda: main(wanted=True))
    assert run_virtual(lambda: main(wanted=False)) is None
