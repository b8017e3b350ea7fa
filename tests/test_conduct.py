"""What a run makes for its stages out of a plan."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parent / "run"))
from world import Toy, World, plan_of, planned

from chaos.conduct import _Run
from chaos.run.lease import LeaseStore
from chaos.run.stop import Stop
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost


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
