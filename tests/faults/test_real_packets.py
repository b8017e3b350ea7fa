"""The contract of the faults on packets, with a real kernel in a network of its own."""

from __future__ import annotations

import asyncio
import dataclasses
import signal

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.grips.sightings import look_until_seen
from chaos.faults.packet_corrupt import PacketCorrupt
from chaos.faults.packet_delay import PacketDelay
from chaos.faults.packet_duplicate import PacketDuplicate
from chaos.faults.packet_loss import PacketLoss
from chaos.faults.packet_rate import PacketRate
from chaos.faults.packet_reorder import PacketReorder
from chaos.inventory import Target
from chaos.ports import Host
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Duration, Ratio, Size
from tests.faults.networks import engine_process, in_network_of_its_own, join, needs_packets, rules

pytestmark = [pytest.mark.system, needs_packets]

FAULTS: tuple[Fault, ...] = (
    PacketCorrupt(share=Ratio(0.1)),
    PacketDelay(delay=Duration(0.05)),
    PacketDelay(delay=Duration(0.04), jitter=Duration(0.04), direction="downstream"),
    PacketDuplicate(share=Ratio(0.1)),
    PacketDuplicate(share=Ratio(0.1), direction="downstream"),
    PacketLoss(share=Ratio(0.02)),
    PacketLoss(share=Ratio(0.2), burst=4, direction="downstream"),
    PacketRate(rate=Size(50_000)),
    PacketReorder(share=Ratio(0.1), direction="upstream"),
)


def test_a_fault_on_packets_keeps_its_contract_on_the_real_machine() -> None:
    async def main() -> None:
        with engine_process() as target:
            async with real_host() as host:
                await check_fault(PacketLoss(share=Ratio(0.1)), (target,), host, within_s=10.0)
            assert [] == rules()

    in_network_of_its_own(main)


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_an_observer_sees_what_is_there_and_nothing_else(fault: Fault) -> None:
    async def main() -> None:
        with engine_process() as target:
            async with real_host() as host:
                await check_negative_control(fault, (target,), host, within_s=0.0)
                await seen_and_gone(fault, target, host)
            assert [] == rules()

    in_network_of_its_own(main)


def test_a_target_that_lives_in_another_network_is_harmed_there() -> None:
    async def main() -> None:
        with engine_process(host="0.0.0.0", elsewhere=True) as found:
            join(found.pids[0], "10.9.9.1", "10.9.9.2")
            target = dataclasses.replace(found, address=f"10.9.9.2:{found.address.rpartition(':')[2]}")
            async with real_host() as host:
                for fault in (PacketLoss(share=Ratio(0.1)), PacketCorrupt(share=Ratio(0.1))):
                    await seen_and_gone(fault, target, host, there=("nsenter", "-t", str(found.pids[0]), "-n"))
            assert [] == rules()

    in_network_of_its_own(main)


def test_ipv6_is_harmed_like_ipv4() -> None:
    async def main() -> None:
        with engine_process(host="::1") as target:
            async with real_host() as host:
                for fault in (PacketLoss(share=Ratio(0.1)), PacketDuplicate(share=Ratio(0.1))):
                    await seen_and_gone(fault, target, host, tool="ip6tables")

    in_network_of_its_own(main)


def test_two_faults_act_on_one_port_at_once_and_revert_in_any_order() -> None:
    async def main() -> None:
        delay, loss = PacketDelay(delay=Duration(0.03)), PacketCorrupt(share=Ratio(0.1))
        with engine_process() as target:
            async with real_host() as host:
                undos = [await fault.prepare((target,), host) for fault in (delay, loss)]
                await asyncio.gather(delay.inject((target,), undos[0], host), loss.inject((target,), undos[1], host))
                assert (await delay.confirm((target,), undos[0], host)).seen
                assert (await loss.confirm((target,), undos[1], host)).seen
                await delay.revert(undos[0], host)
                assert (await delay.confirm_gone((target,), undos[0], host)).seen
                assert (await loss.confirm((target,), undos[1], host)).seen
                await loss.revert(undos[1], host)
                assert (await loss.confirm_gone((target,), undos[1], host)).seen
            assert [] == rules()

    in_network_of_its_own(main)


def test_a_saboteur_that_is_killed_lets_everything_pass() -> None:
    async def main() -> None:
        fault = PacketLoss(share=Ratio(1))
        with engine_process() as target:
            async with real_host() as host:
                undo = await fault.prepare((target,), host)
                await fault.inject((target,), undo, host)
                assert "timeout" == await host.network.connect(target.address, 0.3)
                for saboteur in host.processes.with_argument(undo["warrant"]):
                    host.processes.signal(saboteur, signal.SIGKILL)
                assert "accepted" == await host.network.connect(target.address, 3.0)
                await fault.revert(undo, host)
            assert [] == rules()

    in_network_of_its_own(main)


async def seen_and_gone(
    fault: Fault, target: Target, host: Host, *, tool: str = "iptables", there: tuple[str, ...] = ()
) -> None:
    """Seen while it is there, with a rule; not after the revert, and no rule is left."""
    undo = await fault.prepare((target,), host)
    assert not (await fault.confirm((target,), undo, host)).seen
    await fault.inject((target,), undo, host)
    confirmed = await look_until_seen(lambda: fault.confirm((target,), undo, host), host.clock, within_s=5.0)
    assert (confirmed.seen, True) == (True, bool(rules(*there, tool=tool))), confirmed.what
    assert not (await fault.confirm_gone((target,), undo, host)).seen
    await fault.revert(undo, host)
    gone = await look_until_seen(lambda: fault.confirm_gone((target,), undo, host), host.clock, within_s=5.0)
    assert (gone.seen, []) == (True, rules(*there, tool=tool)), gone.what
