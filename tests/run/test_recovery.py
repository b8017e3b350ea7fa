"""Recovery reverts what is left, tells what it could not, and is safe to do twice or at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from chaos.faults.catalog import by_kind
from chaos.faults.fault import Fault
from chaos.faults.net_down import NetDown
from chaos.faults.noop import Noop
from chaos.faults.process_kill import ProcessKill
from chaos.inventory import Target
from chaos.ports import HttpReply
from chaos.run.lease import Lease, LeaseStore
from chaos.run.recovery import recover, revert_lease
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost

FOLDER = Path("/state/leases")
CONTROL = "unix:///run/stack/control.sock:"


class Scene:
    """A stack with one target, and a store of leases."""

    def __init__(self) -> None:
        self.world = InMemoryHost()
        self.tools = self.world.add_target("tools", "tool")
        self.store = LeaseStore(FOLDER, self.world.files)

    async def harm(self, fault: Fault, *, run: str = "run-1", boot: str = "boot-1") -> Lease:
        targets: tuple[Target, ...] = (self.world.target("tools"),)
        undo = await fault.prepare(targets, self.world.host)
        lease = Lease(
            id=f"{run}-{fault.kind}",
            run=run,
            run_dir="/runs/x",
            stack="bundled",
            fault=f"a {fault.kind}",
            kind=fault.kind,
            targets=("tools",),
            undo=undo,
            boot_id=boot,
            granted_at=self.world.clock.now(),
            lease_until=self.world.clock.now() + 30,
        )
        self.store.grant(lease)
        await fault.inject(targets, undo, self.world.host)
        return lease

    async def recover(self, **more: object):
        return await recover(self.store, self.world.host, faults_by_kind=by_kind, **more)

    async def serves(self) -> bool:
        tools = self.world.target("tools")
        return await self.world.host.network.round_trip(tools.via, "http", 1.0) is not None


def scene(play: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        await play(Scene())

    run_virtual(main)


def test_every_lease_is_reverted_confirmed_gone_and_forgotten() -> None:
    async def play(s: Scene) -> None:
        await s.harm(NetDown())
        await s.harm(Noop())
        results = await s.recover()
        assert [(r.fault, r.ok, r.gone) for r in results] == [("a net_down", True, True), ("a noop", True, True)]
        assert await s.serves()
        assert s.store.list().leases == ()

    scene(play)


def test_a_second_recovery_finds_nothing_to_do() -> None:
    async def play(s: Scene) -> None:
        await s.harm(ProcessKill())
        await s.recover()
        assert await s.recover() == ()

    scene(play)


def test_two_recoveries_at_the_same_time_do_no_harm() -> None:
    async def play(s: Scene) -> None:
        await s.harm(ProcessKill())
        first, second = await asyncio.gather(s.recover(), s.recover())
        assert all(r.ok and r.gone for r in (*first, *second))
        assert await s.serves()

    scene(play)


def test_only_the_leases_of_the_named_run_are_touched() -> None:
    async def play(s: Scene) -> None:
        kept = await s.harm(NetDown(), run="run-1")
        await s.harm(NetDown(), run="run-2")
        (result,) = await s.recover(only_run="run-2")
        assert result.run == "run-2"
        assert s.store.list().leases == (kept,)
        assert not await s.serves()

    scene(play)


def test_a_revert_that_fails_is_tried_five_times_then_told_with_its_manual_command_and_the_lease_stays() -> None:
    async def play(s: Scene) -> None:
        lease = await s.harm(ProcessKill())
        s.world.http.trouble[CONTROL] = HttpReply(500, "stuck", {})
        begun = s.world.clock.now()
        (result,) = await s.recover()
        assert not result.ok
        assert "curl --unix-socket" in result.why
        assert s.world.clock.now() - begun == pytest.approx(1.5, abs=0.01)
        assert sum(deed.endswith("/release") for deed in s.world.log) == 5
        assert s.store.list().leases == (lease,)

    scene(play)


def test_a_revert_that_fails_once_is_tried_again() -> None:
    async def play(s: Scene) -> None:
        await s.harm(ProcessKill())
        s.world.http.trouble[CONTROL] = HttpReply(0, "", {}, error="timeout: busy")
        asyncio.get_running_loop().call_later(0.25, s.world.http.trouble.clear)
        (result,) = await s.recover()
        assert result.ok
        assert result.gone

    scene(play)


def test_a_stack_that_is_gone_holds_nothing_so_the_lease_is_forgotten_but_nothing_is_seen_to_work() -> None:
    async def play(s: Scene) -> None:
        await s.harm(ProcessKill(), boot="boot-0")
        s.world.supervisor.absent = True
        (result,) = await s.recover()
        assert (result.ok, result.gone) == (True, False)
        assert s.store.list().leases == ()

    scene(play)


def test_a_hold_that_arrives_after_the_revert_is_released_as_well() -> None:
    async def play(s: Scene) -> None:
        lease = await s.harm(ProcessKill())
        hold = lease.undo["hold"]
        asyncio.get_running_loop().call_later(0.01, s.world.supervisor.targets["tools"].holds.add, hold)
        (result,) = await s.recover()
        assert result.gone
        assert s.world.supervisor.targets["tools"].holds == set()

    scene(play)


def test_a_hold_that_arrives_late_is_seen_although_the_target_answers() -> None:
    """It would keep the target dead at its next death."""

    async def play(s: Scene) -> None:
        fault, targets = ProcessKill(), (s.world.target("tools"),)
        undo = await fault.prepare(targets, s.world.host)
        s.world.supervisor.targets["tools"].holds.add(undo["hold"])
        assert not (await fault.confirm_gone((), undo, s.world.host)).seen
        await fault.revert(undo, s.world.host)
        assert (await fault.confirm_gone((), undo, s.world.host)).seen

    scene(play)


def test_a_lease_that_cannot_be_removed_is_told_and_the_others_are_reverted(monkeypatch) -> None:
    async def play(s: Scene) -> None:
        stuck = await s.harm(NetDown())
        await s.harm(Noop())
        remove = LeaseStore.remove

        def refuse(store: LeaseStore, lease_id: str) -> None:
            if lease_id == stuck.id:
                raise OSError(30, "Read-only file system")
            remove(store, lease_id)

        monkeypatch.setattr(LeaseStore, "remove", refuse)
        first, second = await s.recover()
        assert [(False, True), True] == [(first.ok, "Read-only" in first.why), second.ok]
        assert await s.serves()

    scene(play)


def test_a_spared_lease_is_left_alone() -> None:
    async def play(s: Scene) -> None:
        kept = await s.harm(NetDown(), run="run-1")
        await s.harm(Noop(), run="run-2")
        (result,) = await s.recover(spared=lambda lease: lease.run == "run-1")
        assert ("run-2", (kept,)) == (result.run, s.store.list().leases)

    scene(play)


def test_a_damaged_lease_is_reported_as_not_reverted_and_the_others_are_reverted() -> None:
    async def play(s: Scene) -> None:
        await s.harm(NetDown())
        s.world.files.write_atomic(FOLDER / "torn.json", "{")
        good, bad = await s.recover()
        assert good.ok
        assert not bad.ok
        assert "torn.json" in bad.why

    scene(play)


def test_a_fault_of_another_version_is_reported_and_its_lease_stays() -> None:
    async def play(s: Scene) -> None:
        await s.harm(NetDown())
        (result,) = await recover(s.store, s.world.host, faults_by_kind={})
        assert not result.ok
        assert "net_down" in result.why
        assert len(s.store.list().leases) == 1

    scene(play)


def test_a_lease_that_somebody_else_reverted_is_not_reverted_again() -> None:
    async def play(s: Scene) -> None:
        lease = await s.harm(NetDown())
        s.store.remove(lease.id)
        changes = s.world.changes
        result = await revert_lease(lease, s.store, s.world.host, by_kind, by="recover", patience_s=1.5)
        assert result.ok
        assert s.world.changes == changes

    scene(play)
