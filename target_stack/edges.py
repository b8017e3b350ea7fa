"""Who calls whom: each pair of callers and target has an edge of its own, so that one can be cut and the others go on.

    users ─ gateway ─► gateway        gateway ─ tools ─► tools
    agents ─ agent->gateway ─► gateway        agents ─ agent->tools ─► tools

The first callers of a target have the edge that bears its name; the name of any other edge names its callers too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from target_stack.config import Topology

USERS = "users"
_CALLERS: Mapping[str, tuple[str, ...]] = {
    "gateway": (USERS, "agent"),
    "tool": ("gateway", "agent"),
    "device": ("operators",),
}
"""The roles that call a role, the first callers first; all others are called by the gateway alone."""
_OUTSIDE = (USERS, "operators")


@dataclass(frozen=True)
class Edge:
    """The way of all callers of a role to one target."""

    name: str
    caller: str
    target: str


def edges_of(topology: Topology) -> tuple[Edge, ...]:
    """All edges, each target's own first, in the order of the file; then those of its further listeners."""
    to_targets = (
        Edge(target.name if first else f"{caller}->{target.name}", caller, target.name)
        for target in topology.targets
        for first, caller in _callers(topology, target.role)
    )
    names = {target.name for target in topology.targets}
    to_paths = (Edge(name, "decode", name) for name in topology.endpoints() if name not in names)
    return (*to_targets, *to_paths)


def _callers(topology: Topology, role: str) -> list[tuple[bool, str]]:
    there = [each for each in _CALLERS.get(role, ("gateway",)) if each in _OUTSIDE or topology.of_role(each)]
    return [(number == 0, each) for number, each in enumerate(there)]
