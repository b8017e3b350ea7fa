"""The topology as checked values, and each component's configuration made from it; pure but for one file read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from target_stack.agent.plans import AGENTS
from target_stack.embedder.embedding import AUTO, choose
from target_stack.tools.permissions import agent_token, with_token_hashes

ROLES = (
    *("gateway", "engine", "prefill", "decode", "fallback-engine", "vector-store", "embedder", "cache", "tool"),
    *("agent", "device"),
)
COMPONENTS = ("gateway", "engine", "embedder", "postgres", "valkey", "tools", "agent", "device")
_NOWHERE: Mapping[str, str] = MappingProxyType({})
_TARGET_KEYS = ("name", "role", "node", "component", "settings", "disk_mib")
_WIRES = {"postgres": "postgres", "valkey": "redis"}
_TOPOLOGY_KEYS = ("version", "name", "profile", "targets")
_BUNDLED = {"embedded": "stack.yaml", "embedded-pd": "profiles/embedded-pd.yaml"}
PROFILES = tuple(_BUNDLED)
KV_PATHS = ("side_channel", "transfer")
"""Listeners of a producer of KV blocks beside its own address, each an edge that can be attacked."""


class BadTopology(ValueError):
    """The topology file makes no sense; the message says where and why."""


@dataclass(frozen=True)
class TargetSpec:
    """One part of the stack as the file describes it. `disk_mib` is the size of the disk for its data, where the stack
    may have disks of its own.
    """

    name: str
    role: str
    node: str | None
    component: str
    settings: Mapping[str, Any]
    disk_mib: int | None = None

    @property
    def wire(self) -> str:
        """What it speaks."""
        return _WIRES.get(self.component, "http")

    @property
    def kv_paths(self) -> Mapping[str, str]:
        """The names of its paths for KV blocks in the address book, by path; none but of a producer."""
        producer = self.settings.get("kv_transfer", {}).get("role") == "producer"
        return {path: f"{self.name}.{path}" for path in KV_PATHS} if producer else {}


@dataclass(frozen=True)
class Topology:
    """The whole stack as the file describes it."""

    name: str
    profile: str
    targets: tuple[TargetSpec, ...]

    def of_role(self, role: str) -> tuple[TargetSpec, ...]:
        """All targets of a role, in the order of the file."""
        return tuple(target for target in self.targets if target.role == role)

    def serving(self) -> tuple[TargetSpec, ...]:
        """The main engines that answer: whole ones, or those that decode."""
        return tuple(target for target in self.targets if target.role in ("engine", "decode"))

    def endpoints(self) -> tuple[str, ...]:
        """Names of all that listens: every target, and its paths for KV blocks."""
        return tuple(name for target in self.targets for name in (target.name, *target.kv_paths.values()))


def _checked_keys(record: Any, known: tuple[str, ...], where: str) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise BadTopology(f"{where}: expected keys and values")
    for key in record:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            raise BadTopology(f"{where}: unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return record


def _one_of(value: Any, known: tuple[str, ...], where: str) -> str:
    if value not in known:
        raise BadTopology(f"{where}: {value!r} is none of {', '.join(known)}")
    return str(value)


def _size(value: Any, where: str) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise BadTopology(f"{where}: {value!r} is no whole number of MiB")
    return value


def _target(record: Any, where: str) -> TargetSpec:
    known = _checked_keys(record, _TARGET_KEYS, where)
    if not isinstance(known.get("name"), str):
        raise BadTopology(f"{where}: a target needs a name")
    where = f"target {known['name']}"
    return TargetSpec(
        name=known["name"],
        role=_one_of(known.get("role"), ROLES, f"{where}: role"),
        node=known.get("node"),
        component=_one_of(known.get("component"), COMPONENTS, f"{where}: component"),
        settings=dict(known.get("settings") or {}),
        disk_mib=_size(known.get("disk_mib"), f"{where}: disk_mib"),
    )


def parse_topology(record: Any) -> Topology:
    """Check a decoded file. Raises BadTopology."""
    known = _checked_keys(record, _TOPOLOGY_KEYS, "topology")
    if known.get("version") != 1:
        raise BadTopology(f"topology: version {known.get('version')!r}, expected 1")
    targets = tuple(_target(t, f"target {n}") for n, t in enumerate(known.get("targets") or (), 1))
    names = [target.name for target in targets]
    for name in names:
        if names.count(name) > 1:
            raise BadTopology(f"topology: two targets are named {name!r}")
    topology = Topology(str(known.get("name")), str(known.get("profile")), targets)
    for role in ("gateway", "embedder", "vector-store", "tool"):
        if len(topology.of_role(role)) != 1:
            raise BadTopology(f"topology: needs exactly one target of role {role}")
    if len(topology.of_role("cache")) > 1:
        raise BadTopology("topology: needs at most one target of role cache")
    if not topology.serving():
        raise BadTopology("topology: needs at least one target of role engine or decode")
    return topology


def load_topology(profile: str = "embedded") -> Topology:
    """Read the topology file of a profile. Raises BadTopology or OSError."""
    text = (Path(__file__).parent / _BUNDLED[profile]).read_text("utf-8")
    try:
        return parse_topology(yaml.safe_load(text))
    except yaml.YAMLError as problem:
        raise BadTopology(f"topology: no YAML: {problem}") from problem


def with_chosen_embedder(topology: Topology) -> Topology:
    """`model: auto` replaced by what is installed here, so that everybody is told the same. Raises NoSuchModel."""
    return replace(topology, targets=tuple(_chosen(target) for target in topology.targets))


def _chosen(target: TargetSpec) -> TargetSpec:
    if target.component != "embedder":
        return target
    return replace(target, settings={**target.settings, "model": choose(target.settings.get("model", AUTO))})


def gateway_upstreams(topology: Topology, address: Mapping[str, str]) -> dict[str, Any]:
    """Where the gateway finds everybody; `address` maps a target's name to the `host:port` that clients use."""

    def engine(target: TargetSpec) -> dict[str, Any]:
        return {"name": target.name, "url": f"http://{address[target.name]}", "model": target.settings["model"]}

    def only(role: str) -> TargetSpec:
        return topology.of_role(role)[0]

    fallbacks, caches, agents = (topology.of_role(role) for role in ("fallback-engine", "cache", "agent"))
    prefill = [engine(target) for target in topology.of_role("prefill")]
    return {
        **({"prefill": prefill} if prefill else {}),
        "engines": [engine(target) for target in topology.serving()],
        "fallback": engine(fallbacks[0]) if fallbacks else None,
        "model": topology.serving()[0].settings["model"],
        "embedder": f"http://{address[only('embedder').name]}",
        "vector_store": address[only("vector-store").name],
        "cache": address[caches[0].name] if caches else None,
        "tools": f"http://{address[only('tool').name]}",
        "agents": f"http://{address[agents[0].name]}" if agents else None,
    }


def agent_upstreams(topology: Topology, address: Mapping[str, str], secret: bytes | None) -> dict[str, Any]:
    """Where the agents find the front door and the tools, and what each of them shows to the tools."""
    gateway, tools = topology.of_role("gateway")[0], topology.of_role("tool")[0]
    return {
        "gateway": f"http://{address[gateway.name]}",
        "tools": f"http://{address[tools.name]}",
        "model": topology.serving()[0].settings["model"],
        "tokens": {name: agent_token(secret, name) for name in AGENTS} if secret else {},
    }


def kv_settings(
    target: TargetSpec, address: Mapping[str, str], direct: Mapping[str, str]
) -> dict[str, Mapping[str, Any]]:
    """Where a producer listens for those who fetch its blocks, and where it tells them to come."""
    paths = target.kv_paths
    if not paths:
        return {}
    listens = {path: direct[name] for path, name in paths.items()}
    told = {f"{path}_via": address[name] for path, name in paths.items()}
    return {"kv_transfer": {**target.settings["kv_transfer"], **listens, **told}}


WITH_STORAGE = ("postgres", "valkey", "tools", "agent")
"""The components that are of no use without their files."""


def admin_socket(data_dir: str) -> str:
    """Where the gateway listens for its operators."""
    return f"{data_dir}/admin.sock"


def device_of(target: TargetSpec) -> str | None:
    """The name of the GPU that an engine runs on; each has the first one of its node for itself."""
    return f"{target.node}-gpu0" if target.component == "engine" and target.node else None


def device_settings(topology: Topology, target: TargetSpec, devices_dir: str) -> dict[str, Any]:
    """Where the register files are: all of them for the device process, its own for an engine."""
    if not topology.of_role("device"):
        return {}
    if target.component == "device":
        names = [name for each in topology.targets if (name := device_of(each))]
        return {"devices": [{"id": name, "path": f"{devices_dir}/{name}"} for name in dict.fromkeys(names)]}
    name = device_of(target)
    return {"device": f"{devices_dir}/{name}"} if name else {}


def component_config(
    topology: Topology,
    target: TargetSpec,
    *,
    listen: str,
    address: Mapping[str, str],
    data_dir: str,
    secret: bytes | None = None,
    devices_dir: str = "",
    direct: Mapping[str, str] = _NOWHERE,
) -> dict[str, Any]:
    """All that a component is started with: its settings, its address, its folder, and for the gateway the others.

    `direct` are the addresses at which targets and their paths listen themselves.
    `secret` is drawn anew for every stack; the tokens by which callers of the tools are known are made from it.
    """
    config: dict[str, Any] = {"name": target.name, "listen": listen, **target.settings}
    config |= device_settings(topology, target, devices_dir)
    config |= kv_settings(target, address, direct)
    if target.role == "gateway":
        config |= {**gateway_upstreams(topology, address), "admin": admin_socket(data_dir)}
    if target.role == "agent":
        config |= agent_upstreams(topology, address, secret)
    if target.component in ("gateway", "tools", "agent"):
        config["data_dir"] = data_dir
    if secret and target.role == "gateway":
        config["tools_token"] = agent_token(secret, "gateway")
    if secret and target.component == "tools":
        config["agents"] = with_token_hashes(target.settings.get("agents", {}), secret)
    return config
