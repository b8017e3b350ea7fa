"""Whichever fault a run holds, and wherever it is when somebody stops the run: all is reverted, seen to be and told."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chaos.faults.fault import Fault, Undo
from chaos.faults.grips.bare import bare
from chaos.faults.grips.sightings import look_until_seen
from chaos.plan.plan import PlannedFault
from chaos.run.keeper import FaultKeeper
from chaos.run.lease import Lease, LeaseStore
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.testing.recording import Deed, Recording
from tests.contract.test_faults import EXAMPLES, PASSING, RELEASES, target_for

LIFE_S = 4.0
CUTS_AT_MOST = 12
LEASES = Path("/state/leases")


@dataclass
class Interrupting(Recording):
    """A host that cancels whoever runs at one of its calls, as a stop does: at that very await, and once."""

    interrupt_at: int = 0
    victim: asyncio.Task[None] | None = None

    def _begin(self, what: str, *, changes: bool) -> bool:
        here = super()._begin(what, changes=changes)
        if self.victim is not None and len(self.log) == self.interrupt_at:
            self.victim.cancel()
        return here


@dataclass
class Told:
    """The journal."""

    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def record(self, kind: str, /, **fields: Any) -> object:
        self.lines.append((kind, fields))
        return None


def lease_of(planned: PlannedFault, undo: Undo) -> Lease:
    return Lease("run-1", "run", "/runs/run", "/stack", planned.name, planned.fault.kind, (), undo, "boot", 0.0, 60.0)


async def live(keeper: FaultKeeper, planned: PlannedFault) -> None:
    """What a run does with a fault."""
    await keeper.arm(planned)
    await keeper.inject(planned, 0.0)
    await asyncio.sleep(LIFE_S / 2)
    keeper.look(planned)
    await asyncio.sleep(LIFE_S / 2)
    await keeper.revert(planned, "timeline")
    await keeper.settle()


async def cut(fault: Fault, at: int) -> int:
    """One life, stopped at a call of its host; how many calls there were. Raises AssertionError."""
    world = InMemoryHost()
    target, recording = target_for(fault, world), Interrupting(world.host, interrupt_at=at)
    planned = PlannedFault("harm", fault, (target,), 0.0, LIFE_S, 2 * LIFE_S)
    leases, told, undos = LeaseStore(LEASES, world.files), Told(), list[Undo]()

    def noted(planned: PlannedFault, undo: Undo) -> Lease:
        undos.append(undo)
        return lease_of(planned, undo)

    keeper = FaultKeeper(recording.host, told, leases, noted)
    recording.victim = asyncio.create_task(live(keeper, planned))
    await asyncio.wait((recording.victim,))
    assert await keeper.revert_all("SIGINT")
    await keeper.settle()
    assert leases.list().leases == ()
    kinds = [kind for kind, _ in told.lines]
    assert ("lease_granted" in kinds) == ("fault_reverted" in kinds)
    seen_gone = [fields["seen"] for kind, fields in told.lines if kind == "fault_gone"]
    assert [True] * kinds.count("fault_injected") == seen_gone, _where(recording.log, at)
    for undo in undos:
        look = functools.partial(bare(type(fault)).confirm_gone, (), undo, world.host)
        gone = await look_until_seen(look, world.clock, within_s=5)
        assert gone.seen, f"{_where(recording.log, at)}: {gone.what}"
    return len(recording.log)


def _where(log: list[Deed], at: int) -> str:
    return f"cut at call {at}, {log[at - 1].what if 0 < at <= len(log) else 'after all'}"


@pytest.mark.parametrize("fault", [*EXAMPLES, *PASSING, *RELEASES], ids=repr)
def test_a_run_that_is_stopped_at_any_await_leaves_nothing(fault: Fault) -> None:
    calls = run_virtual(lambda: cut(fault, 0))
    for at in sorted({1 + calls * number // CUTS_AT_MOST for number in range(CUTS_AT_MOST)}):
        run_virtual(functools.partial(cut, fault, at))
