"""A partition between two roles cuts every edge between them, both ways, and no other."""

from __future__ import annotations

import dataclasses

import pytest

from chaos.faults.fault import CannotInject
from chaos.faults.net_down import NetDown
from chaos.faults.net_partition import NetPartition
from chaos.inventory import Inventory, Target
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost


def stack(world: InMemoryHost) -> dict[str, Target]:
    """A gateway and an agent that call each other, tools that both call, as an inventory tells it."""
    for name, role in (("gateway", "gateway"), ("agent", "agent"), ("tools", "tool")):
        world.add_target(name, role)
    for name in ("gateway", "tools"):
        world.add_caller(name, "agent")
    world.add_caller("agent", "nobody")  # so that its first edge, the gateway's, is told too
    records = [target.record.to_json() for target in world.supervisor.targets.values()]
    told = {"version": 1, "stack": {"name": "s", "profile": "p"}, "targets": records}
    return {target.name: target for target in Inventory.from_json(told).targets}


def harmed(world: InMemoryHost) -> list[str]:
    return [name for name, listener in world.proxy.listeners.items() if listener.toxics]


def test_a_partition_cuts_both_ways_between_two_roles_and_leaves_all_others() -> None:
    async def main() -> None:
        world = InMemoryHost()
        fault, gateway = NetPartition(from_="agent"), stack(world)["gateway"]
        undo = await fault.prepare((gateway,), world.host)
        await fault.inject((gateway,), undo, world.host)
        assert harmed(world) == ["agent", "agent->gateway"]
        seen = await fault.confirm((gateway,), undo, world.host)
        assert seen.seen, seen.what
        await fault.revert(undo, world.host)
        assert harmed(world) == []

    run_virtual(main)


def test_a_partition_that_cuts_others_too_is_not_confirmed() -> None:
    async def main() -> str:
        world = InMemoryHost()
        fault, tools = NetPartition(from_="agent"), stack(world)["tools"]
        undo = await fault.prepare((tools,), world.host)
        await fault.inject((tools,), undo, world.host)
        world.proxy.listeners["tools"].enabled = False
        seen = await fault.confirm((tools,), undo, world.host)
        assert not seen.seen
        return seen.what

    assert run_virtual(main).endswith("as it should for its other callers")


def test_a_role_that_has_no_edge_to_the_target_is_named_with_those_that_have() -> None:
    async def main() -> tuple[str, ...]:
        tools = stack(InMemoryHost())["tools"]
        return (*NetPartition(from_="engine").problems((tools,)), *NetDown(from_="engine").problems((tools,)))

    assert run_virtual(main) == (
        "tools: there is no edge between it and role engine; it is called by gateway, agent and calls nobody",
        "tools: nobody of role engine has an edge to it; its callers are gateway, agent",
    )


def test_callers_are_told_apart_only_where_the_inventory_does() -> None:
    async def main() -> tuple[str, ...]:
        return NetDown(from_="agent").problems((InMemoryHost().add_target("tools", "tool"),))

    wanted = "tools: nobody of role agent has an edge to it; its callers are not told apart in the inventory"
    assert run_virtual(main) == (wanted,)


def test_a_dead_end_on_the_other_side_is_named() -> None:
    async def main() -> str:
        world = InMemoryHost()
        targets = stack(world)
        world.supervisor.targets["agent"].holds.add("somebody")
        leader = world.processes.identify(world.target("agent").pids[0])
        assert leader
        world.processes.signal(leader, 9)
        with pytest.raises(CannotInject) as refused:
            await NetPartition(from_="agent").prepare((targets["gateway"],), world.host)
        return str(refused.value)

    assert run_virtual(main).startswith("agent is dead already: ")


def test_an_inventory_that_tells_callers_apart_survives_a_round_trip() -> None:
    async def main() -> None:
        targets = stack(InMemoryHost())
        inventory = Inventory("s", "p", "test", ready=True, weaknesses=(), targets=tuple(targets.values()))
        again = Inventory.from_json(inventory.to_json())
        assert again == inventory
        assert [edge.proxy for edge in targets["agent"].calls] == ["agent->gateway", "agent->tools"]
        assert dataclasses.replace(targets["tools"], calls=()).edges[1].address == targets["tools"].address

    run_virtual(main)
