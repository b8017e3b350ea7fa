"""Faults that overlap revert in any order, and each observer sees its own harm only."""

from __future__ import annotations

import itertools
import json

import pytest

from chaos.faults.fault import Fault, RevertFailed
from chaos.faults.http_body import HttpBody
from chaos.faults.http_delay import HttpDelay
from chaos.faults.http_status import HttpStatus
from chaos.faults.net_bandwidth import NetBandwidth
from chaos.faults.net_down import NetDown
from chaos.faults.net_latency import NetLatency
from chaos.faults.net_reset import NetReset
from chaos.faults.net_slicer import NetSlicer
from chaos.faults.net_timeout import NetTimeout
from chaos.faults.node_loss import NodeLoss
from chaos.faults.process_kill import ProcessKill
from chaos.faults.process_stall import ProcessStall
from chaos.faults.stream_cut import StreamCut
from chaos.faults.stream_duplicate import StreamDuplicate
from chaos.faults.stream_stall import StreamStall
from chaos.ports import HttpReply
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.units import Duration, Size

SLOW = NetLatency(latency=Duration(0.1))
EDGES: tuple[Fault, ...] = (NetDown(), SLOW)
CUT, STALL, STATUS = StreamCut(), StreamStall(), HttpStatus()
PAIRS: list[tuple[Fault, Fault]] = [
    (NetDown(), NetDown()),
    (SLOW, SLOW),
    (SLOW, NetDown()),
    (NetDown(), NodeLoss()),
    (SLOW, NodeLoss()),
    (CUT, CUT),
    (CUT, STALL),
    (STATUS, CUT),
    (STATUS, NetDown()),
    (STALL, NodeLoss()),
    (SLOW, NetTimeout()),
    (NetTimeout(), NetReset()),
    (NetBandwidth(rate=Size(1000)), NetSlicer()),
    (HttpBody(), HttpDelay(delay=Duration(0.1))),
    (StreamDuplicate(), NetTimeout()),
]


@pytest.mark.parametrize("first_reverted", [0, 1])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "+".join(fault.kind for fault in pair))
def test_two_faults_on_one_edge_revert_in_any_order(pair: tuple[Fault, Fault], first_reverted: int) -> None:
    async def main() -> None:
        world = InMemoryHost()
        targets = (world.add_target("engine-a", node="n1"),)
        undos = []
        for fault in pair:
            undos.append(await fault.prepare(targets, world.host))
            await fault.inject(targets, undos[-1], world.host)
        first, last = first_reverted, 1 - first_reverted
        await pair[first].revert(undos[first], world.host)
        await world.clock.sleep_until(world.clock.now() + 1)
        assert (await pair[first].confirm_gone(targets, undos[first], world.host)).seen
        assert not (await pair[last].confirm_gone(targets, undos[last], world.host)).seen
        await pair[last].revert(undos[last], world.host)
        await world.clock.sleep_until(world.clock.now() + 1)
        for fault, undo in zip(pair, undos, strict=True):
            assert (await fault.confirm_gone(targets, undo, world.host)).seen
        assert world.proxy.listeners["engine-a"].toxics == []

    run_virtual(main)


def test_a_target_stays_dead_until_the_last_hold_is_released() -> None:
    async def main() -> None:
        world = InMemoryHost()
        targets = (world.add_target("engine-a", node="n1"),)
        kill, loss = ProcessKill(), NodeLoss()
        undo_kill, undo_loss = await kill.prepare(targets, world.host), await loss.prepare(targets, world.host)
        await loss.inject(targets, undo_loss, world.host)
        await world.host.http.call(
            "POST", "unix:///run/stack/control.sock:/targets/engine-a/hold", {"by": undo_kill["hold"]}
        )
        await loss.revert(undo_loss, world.host)
        await world.clock.sleep_until(world.clock.now() + 1)
        assert (await kill.confirm(targets, undo_kill, world.host)).seen
        await kill.revert(undo_kill, world.host)
        await world.clock.sleep_until(world.clock.now() + 1)
        assert (await kill.confirm_gone(targets, undo_kill, world.host)).seen

    run_virtual(main)


def test_a_fault_after_a_restart_harms_the_new_process_although_the_inventory_is_old() -> None:
    async def main() -> None:
        world = InMemoryHost()
        targets = (world.add_target("engine-a", processes=2),)
        for fault in (ProcessKill(), ProcessStall()):
            undo = await fault.prepare(targets, world.host)
            await fault.inject(targets, undo, world.host)
            assert (await fault.confirm(targets, undo, world.host)).seen
            await fault.revert(undo, world.host)
            await world.clock.sleep_until(world.clock.now() + 1)
        assert world.target("engine-a").pids != targets[0].pids

    run_virtual(main)


def test_no_observer_is_fooled_by_another_faults_harm() -> None:
    edges = (SLOW, NetDown(), NetTimeout(), NetReset(), NetSlicer(), NetBandwidth(rate=Size(1000)))
    requests = (CUT, STALL, STATUS, HttpBody(), HttpDelay(delay=Duration(0.1)), StreamDuplicate())
    faults: tuple[Fault, ...] = (ProcessKill(), ProcessStall(), *edges, *requests)

    async def seen(done: Fault, asked: Fault) -> bool:
        world = InMemoryHost()
        targets = (world.add_target("engine-a", node="n1", processes=2),)
        undo_asked = await asked.prepare(targets, world.host)
        await done.inject(targets, await done.prepare(targets, world.host), world.host)
        return (await asked.confirm(targets, undo_asked, world.host)).seen

    for done, asked in itertools.permutations(faults, 2):
        assert not run_virtual(lambda done=done, asked=asked: seen(done, asked)), (done.kind, asked.kind)


def test_a_kill_takes_what_the_process_has_started_meanwhile() -> None:
    async def main() -> None:
        world = InMemoryHost()
        targets = (world.add_target("tools", "tool"),)
        undo = await ProcessKill().prepare(targets, world.host)
        late = world.processes.spawn(targets[0].pids[0])
        await ProcessKill().inject(targets, undo, world.host)
        assert world.processes.state(late) is None

    run_virtual(main)


def test_a_stall_freezes_the_core_and_leaves_the_front_running() -> None:
    async def main() -> None:
        world = InMemoryHost()
        target = world.add_target("engine-a", processes=2)
        undo = await ProcessStall().prepare((target,), world.host)
        await ProcessStall().inject((target,), undo, world.host)
        states = [world.processes.state(world.processes.identify(pid)) for pid in target.pids]
        assert states == ["S", "T"]

    run_virtual(main)


@pytest.mark.parametrize(
    "fault",
    [NetDown(), SLOW, ProcessKill(), NodeLoss(), CUT, STALL, STATUS, NetTimeout(), HttpBody(), StreamDuplicate()],
    ids=lambda fault: fault.kind,
)
def test_a_revert_that_fails_tells_the_manual_command(fault: Fault) -> None:
    async def main() -> str:
        world = InMemoryHost()
        targets = (world.add_target("engine-a", node="n1"),)
        undo = json.loads(json.dumps(await fault.prepare(targets, world.host)))
        await fault.inject(targets, undo, world.host)
        for server in ("http://127.0.0.1:8474", "unix:///run/stack/control.sock"):
            world.http.trouble[server] = HttpReply(0, "", {}, error="timeout: busy")
        with pytest.raises(RevertFailed) as failed:
            await fault.revert(undo, world.host)
        return str(failed.value)

    assert "by hand: curl " in run_virtual(main)


def test_a_revert_of_many_targets_does_not_stop_at_the_first_that_fails() -> None:
    async def main() -> None:
        world = InMemoryHost()
        targets = tuple(world.add_target(name) for name in ("a", "b"))
        undo = await NetDown().prepare(targets, world.host)
        await NetDown().inject(targets, undo, world.host)
        world.http.trouble["http://127.0.0.1:8474/proxies/a"] = HttpReply(500, "", {})
        with pytest.raises(RevertFailed):
            await NetDown().revert(undo, world.host)
        assert world.proxy.listeners["b"].enabled
        assert not world.proxy.listeners["a"].enabled

    run_virtual(main)
