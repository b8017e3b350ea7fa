"""What can be attacked: the record of a running stack, the same shape for every kind of stack.

Read from `inventory.json` (DESIGN section 9). Faults and probes get `Target` values and nothing else, so nothing
outside the inventory can be hit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

ENGINE_ROLES = ("engine", "prefill", "decode", "fallback-engine")
"""Roles of model servers; a disaggregated stack has `prefill` and `decode` in place of `engine`."""

ROLES = ("gateway", *ENGINE_ROLES, "vector-store", "embedder", "cache", "tool", "agent", "device")


@dataclass(frozen=True)
class Edge:
    """The way of all callers of a role to one target through the fault proxy: `via` is where they connect, `proxy` the
    name of the listener there. `role`, `address` and `wire` are the target's.
    """

    caller: str
    target: str
    role: str
    via: str
    proxy: str
    address: str
    wire: str = "http"


@dataclass(frozen=True)
class Target:
    """One part of the stack.

    `address` is direct, `via` goes through the fault proxy (both `host:port`). `handles` are the grips a fault may use:
    `process_group` (int), `supervisor` (unix socket path of the control API), `proxy` ({"admin": "host:port", "name":
    ..., "token_file": path}), `kv_paths` ({path: {"address", "via", "proxy"}}, the further listeners of an engine that
    hands on KV blocks). `parts` names processes that can be harmed alone (an engine's `core` and `worker`).
    `edges` are the ways of its callers, where each role has one of its own (then `via` is the first's), and `calls`
    those by which it calls others.
    `wire` is what it speaks ("http", "postgres" or "redis"). `model` is what an engine or an embedder serves. `events`
    and `spans` are the URLs of its structured events and of its records of calls, if any.
    """

    name: str
    role: str
    node: str | None
    pids: tuple[int, ...]
    address: str
    via: str | None = None
    metrics: str | None = None
    events: str | None = None
    spans: str | None = None
    wire: str = "http"
    model: str | None = None
    handles: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    edges: tuple[Edge, ...] = ()
    calls: tuple[Edge, ...] = ()

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read one target record; unknown keys are ignored (additions are free). `calls` stand in others' records."""
        name, role, address, wire = record["name"], record["role"], record["address"], record.get("wire", "http")
        return cls(
            name=name,
            role=role,
            node=record.get("node"),
            pids=tuple(record.get("pids", ())),
            address=address,
            via=record.get("via"),
            metrics=record.get("metrics"),
            events=record.get("events"),
            spans=record.get("spans"),
            wire=wire,
            model=record.get("model"),
            handles=dict(record.get("handles", {})),
            parts=dict(record.get("parts", {})),
            edges=tuple(
                Edge(edge["from"], name, role, edge["via"], edge["proxy"], address, wire)
                for edge in record.get("edges", ())
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """The same record again."""
        return {
            "name": self.name,
            "role": self.role,
            "node": self.node,
            "pids": list(self.pids),
            "address": self.address,
            "via": self.via,
            "edges": [{"from": edge.caller, "via": edge.via, "proxy": edge.proxy} for edge in self.edges],
            "metrics": self.metrics,
            "events": self.events,
            "spans": self.spans,
            "wire": self.wire,
            "model": self.model,
            "handles": dict(self.handles),
            "parts": dict(self.parts),
        }


@dataclass(frozen=True)
class Inventory:
    """A whole stack. `environment` is "test" or "production"."""

    stack: str
    profile: str
    environment: str
    ready: bool
    weaknesses: tuple[str, ...]
    targets: tuple[Target, ...]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read `inventory.json`. Raises KeyError or ValueError on a shape or version that is not ours."""
        if record["version"] != 1:
            raise ValueError(f"inventory version {record['version']!r}, expected 1")
        stack = record["stack"]
        targets = tuple(Target.from_json(t) for t in record["targets"])
        edges = tuple(edge for target in targets for edge in target.edges)
        return cls(
            stack=stack["name"],
            profile=stack["profile"],
            environment=stack.get("environment", "test"),
            ready=bool(stack.get("ready", True)),
            weaknesses=tuple(stack.get("weaknesses", ())),
            targets=tuple(replace(t, calls=tuple(e for e in edges if e.caller == t.role)) for t in targets),
        )

    def to_json(self) -> dict[str, Any]:
        """The same record again."""
        return {
            "version": 1,
            "stack": {
                "name": self.stack,
                "profile": self.profile,
                "environment": self.environment,
                "ready": self.ready,
                "weaknesses": list(self.weaknesses),
            },
            "targets": [t.to_json() for t in self.targets],
        }

    def named(self, name: str) -> Target | None:
        """The target of this name."""
        return next((t for t in self.targets if t.name == name), None)

    def of_role(self, role: str) -> tuple[Target, ...]:
        """All targets of this role, in inventory order."""
        return tuple(t for t in self.targets if t.role == role)
