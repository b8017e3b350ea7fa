"""The record of the running stack that the harness reads (`inventory.json`), and its safe way to disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from target_stack.config import TargetSpec, Topology, device_of
from target_stack.edges import Edge
from target_stack.spans import ROUTE as SPANS
from target_stack.storage_check import ROUTE as STORAGE_CHECK

_WITH_EVENTS = ("gateway", "device", "agent")
_WITH_SPANS = ("gateway", "engine", "embedder", "tools")  # components


@dataclass(frozen=True)
class TargetView:
    """All that the record tells of one target now. `pids` are its processes, parent first; `address` is `host:port`;
    `admin` is the socket for the operators of a gateway; `last_exit` how its last process ended, as a status or the
    negative number of a signal; `data` where its data is, when that is on a disk of its own; `parts` names those of its
    processes that are of different kinds; `paths` are its further listeners, direct and through the proxy; `storage` is
    the folder of its files; `edges` are the ways of its callers through the proxy, with their addresses.
    """

    spec: TargetSpec
    state: str
    holds: Sequence[str]
    pids: Sequence[int]
    address: str
    via: str | None
    admin: str | None = None
    burdens: Sequence[str] = ()
    last_exit: int | None = None
    starts: int = 0
    data: Mapping[str, Any] | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    storage: str | None = None
    edges: Sequence[tuple[Edge, str]] = ()


def _path_record(view: TargetView, path: str, proxy: Mapping[str, str] | None) -> dict[str, Any]:
    address, via = view.paths[path]
    behind = {"proxy": {**proxy, "name": view.spec.kv_paths[path]}} if proxy else {}
    return {"address": address, "via": via, **behind}


def _target_record(
    view: TargetView, supervisor: Path, proxy: Mapping[str, str] | None, devices: Mapping[str, str] | None
) -> dict[str, Any]:
    http = f"http://{view.address}" if view.spec.wire == "http" else None
    handles: dict[str, Any] = {"supervisor": str(supervisor)}
    if view.pids:
        handles["process_group"] = view.pids[0]
    if view.admin:
        handles["admin"] = view.admin
    if view.data:
        handles["data"] = dict(view.data)
    if view.storage:
        check = {"check": f"{http}{STORAGE_CHECK}"} if http else {}
        handles["storage"] = {"folder": view.storage, **check}
    if proxy:
        handles["proxy"] = {**proxy, "name": view.spec.name}
    if devices and (device := device_of(view.spec)):
        handles["device"] = {**devices, "id": device, "fidelity": "simulated device"}
    if view.paths:
        handles["kv_paths"] = {path: _path_record(view, path, proxy) for path in view.paths}
    return {
        "name": view.spec.name,
        "role": view.spec.role,
        "node": view.spec.node,
        "component": view.spec.component,
        "model": view.spec.settings.get("model"),
        "pids": list(view.pids),
        "parts": dict(view.parts),
        "address": view.address,
        "via": view.via,
        "edges": [{"from": edge.caller, "via": via, "proxy": edge.name} for edge, via in view.edges],
        "metrics": f"{http}/metrics" if http else None,
        "events": f"{http}/debug/events" if view.spec.role in _WITH_EVENTS else None,
        "spans": f"{http}{SPANS}" if view.spec.component in _WITH_SPANS else None,
        "wire": view.spec.wire,
        "state": view.state,
        "holds": list(view.holds),
        "burdens": list(view.burdens),
        "last_exit": view.last_exit,
        "starts": view.starts,
        "handles": handles,
    }


def inventory_record(
    topology: Topology,
    views: Sequence[TargetView],
    *,
    ready: bool,
    weaknesses: Sequence[str],
    supervisor: Path,
    proxy: Mapping[str, str] | None,
    token_file: Path,
) -> dict[str, Any]:
    """The whole record, version 1. `supervisor` is the path of the control socket, `proxy` the admin address, the kind
    and perhaps the token file of the fault proxy, `token_file` that of the device process.
    """
    stack = {
        "name": topology.name,
        "profile": topology.profile,
        "environment": "test",
        "ready": ready,
        "weaknesses": list(weaknesses),
    }
    device = next((view.address for view in views if view.spec.role == "device"), None)
    devices = {"admin": device, "token_file": str(token_file)} if device else None
    targets = [_target_record(view, supervisor, proxy, devices) for view in views]
    return {"version": 1, "stack": stack, "targets": targets, "faults_in_force": [], "run": None}


def write_atomic(path: Path, record: Mapping[str, Any]) -> None:
    """Replace a JSON file, so that a reader sees the old or the new one whole. Raises OSError."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    fresh.replace(path)
