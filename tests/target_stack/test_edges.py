"""Who calls whom in the bundled stack."""

from __future__ import annotations

from dataclasses import replace

from target_stack.config import load_topology
from target_stack.edges import Edge, edges_of


def test_every_target_has_an_edge_of_its_name_and_further_callers_have_theirs():
    topology = load_topology()
    edges = edges_of(topology)
    assert {target.name for target in topology.targets} <= {edge.name for edge in edges}
    assert [edge for edge in edges if edge.name != edge.target] == [
        Edge("agent->gateway", "agent", "gateway"),
        Edge("agent->tools", "agent", "tools"),
    ]
    assert [edge.caller for edge in edges if edge.target == "gateway"] == ["users", "agent"]
    assert [edge.caller for edge in edges if edge.target == "engine-a"] == ["gateway"]


def test_who_is_not_there_needs_no_edge():
    topology = load_topology()
    without = replace(topology, targets=tuple(t for t in topology.targets if t.role != "agent"))
    assert all(edge.caller != "agent" for edge in edges_of(without))
