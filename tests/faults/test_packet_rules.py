"""Rules for packets: which are written where, and that ours and only ours are taken away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.grips import rules
from chaos.faults.grips.rules import PLACES, Edge
from chaos.faults.packet_loss import PacketLoss
from chaos.ports import Ran
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.units import Ratio

HERE = Edge("engine-a", 0, "127.0.0.1:41001", 4001, None)
THERE = Edge("engine-a", 0, "10.0.0.2:8000", 4001, "4026532999")
MARK = "brownout-packet_loss-0"


def in_memory(test: Callable[[InMemoryHost], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(InMemoryHost())

    run_virtual(main)


def test_both_ways_are_two_rules_on_the_targets_own_port_and_nothing_else() -> None:
    async def test(world: InMemoryHost) -> None:
        await rules.put(HERE, "both", 20, MARK, world.host)
        out, into = (" ".join(rule.words) for rule in world.links.rules)
        tail = (
            "-m mark ! --mark 0x100000/0x100000 -m comment --comment brownout-packet_loss-0.0 "
            "-j NFQUEUE --queue-num 20000 --queue-bypass"
        )
        assert f"INPUT -p tcp -d 127.0.0.1 --dport 41001 {tail}" == into
        assert f"POSTROUTING -p tcp -s 127.0.0.1 --sport 41001 {tail}" == out

    in_memory(test)


@pytest.mark.parametrize(("way", "chain"), [("upstream", "INPUT"), ("downstream", "POSTROUTING")])
def test_one_way_is_one_rule(way: rules.Way, chain: str) -> None:
    async def test(world: InMemoryHost) -> None:
        await rules.put(HERE, way, 20, MARK, world.host)
        assert [chain] == [rule.words[0] for rule in world.links.rules]

    in_memory(test)


def test_what_others_wrote_stays() -> None:
    async def test(world: InMemoryHost) -> None:
        await rules.put(HERE, "both", 20, MARK, world.host)
        await rules.put(HERE, "both", 21, "brownout-packet_loss-00", world.host)
        await rules.take_away(HERE, MARK, world.host)
        await rules.take_away(HERE, MARK, world.host)
        assert {"brownout-packet_loss-00.0"} == {rule.of("--comment") for rule in world.links.rules}
        assert ("brownout-packet_loss-00",) == await rules.other_marks(HERE, MARK, world.host)

    in_memory(test)


def test_a_bit_that_a_rule_uses_is_not_free() -> None:
    async def test(world: InMemoryHost) -> None:
        await rules.put(HERE, "both", 22, MARK, world.host)
        assert [place for place in PLACES if place != 22] == await rules.free_places([HERE], world.host)

    in_memory(test)


def test_another_network_is_entered_through_whoever_lives_there_now() -> None:
    async def test(world: InMemoryHost) -> None:
        world.programs.answers["lsns"] = Ran(0, "4026531840     1\n4026532999  5005\n", "")
        world.programs.answers["nsenter --target 5005 --net iptables"] = Ran(0, "", "")
        await rules.put(THERE, "upstream", 20, MARK, world.host)
        assert any(deed.startswith("nsenter --target 5005 --net iptables") for deed in world.changes)

    in_memory(test)


def test_a_network_that_is_gone_has_taken_its_rules_along() -> None:
    async def test(world: InMemoryHost) -> None:
        world.programs.answers["lsns"] = Ran(0, "4026531840     1\n", "")
        await rules.take_away(THERE, MARK, world.host)
        assert await rules.packets_counted(THERE, MARK, world.host) is None
        with pytest.raises(CannotInject, match="its network is gone"):
            await rules.put(THERE, "both", 20, MARK, world.host)

    in_memory(test)


def test_a_rule_that_stays_is_told_with_the_command_that_removes_it() -> None:
    async def test(world: InMemoryHost) -> None:
        await rules.put(HERE, "upstream", 20, MARK, world.host)
        real = world.programs.tools["iptables"]
        world.programs.tools["iptables"] = lambda words: Ran(4, "", "locked") if "-D" in words else real(words)
        with pytest.raises(RevertFailed, match="locked; by hand: sudo iptables -t mangle -D INPUT -p tcp"):
            await rules.take_away(HERE, MARK, world.host)

    in_memory(test)


def test_a_rule_that_a_dead_harness_still_writes_is_stopped() -> None:
    async def test(world: InMemoryHost) -> None:
        writer = world.processes.spawn(words=("iptables", "-I", "INPUT", "--comment", HERE.comment(MARK)))
        await rules.take_away(HERE, MARK, world.host)
        assert world.processes.state(writer) is None

    in_memory(test)


def test_a_queue_that_somebody_has_makes_the_fault_take_another() -> None:
    async def test(world: InMemoryHost) -> None:
        target = world.add_target("engine-a")
        fault = PacketLoss(share=Ratio(0.1))
        world.programs.refusals += ["the kernel refuses packet queue 20000: Operation not permitted"] * 2
        undo = await fault.prepare((target,), world.host)
        await fault.inject((target,), undo, world.host)
        assert ["22000", "22000"] == [rule.of("--queue-num") for rule in world.links.rules]

    in_memory(test)


def test_what_is_wrong_beside_a_taken_queue_is_told_at_once() -> None:
    async def test(world: InMemoryHost) -> None:
        target = world.add_target("engine-a")
        fault = PacketLoss(share=Ratio(0.1))
        world.programs.refusals += ["the network of process 1 cannot be entered: Permission denied"]
        undo = await fault.prepare((target,), world.host)
        with pytest.raises(CannotInject, match="Permission denied"):
            await fault.inject((target,), undo, world.host)

    in_memory(test)


def test_a_share_that_bursts_cannot_reach_is_a_problem() -> None:
    target = InMemoryHost().add_target("engine-a")
    assert () == PacketLoss(share=Ratio(0.8), burst=4).problems((target,))
    assert "at most 80% can be lost, not 81%" in PacketLoss(share=Ratio(0.81), burst=4).problems((target,))[0]
    assert () == PacketLoss(share=Ratio(1)).problems((target,))
