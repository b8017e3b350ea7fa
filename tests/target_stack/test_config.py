"""The topology file, and what the components are told."""

from __future__ import annotations

import pytest

from target_stack.agent.settings import AgentConfig
from target_stack.config import BadTopology, component_config, load_topology, parse_topology
from target_stack.engine.config import EngineConfig
from target_stack.gateway.config import GatewayConfig
from target_stack.tools.permissions import agent_token
from target_stack.weaknesses import WEAKNESSES, find_weaknesses, plant

MINIMAL = [
    {"name": "front", "role": "gateway", "component": "gateway"},
    {"name": "e1", "role": "engine", "component": "engine", "settings": {"model": "m"}},
    {"name": "embed", "role": "embedder", "component": "embedder", "settings": {"model": "h"}},
    {"name": "pg", "role": "vector-store", "component": "postgres"},
    {"name": "t", "role": "tool", "component": "tools"},
]

CACHES = [{"name": name, "role": "cache", "component": "valkey"} for name in ("c1", "c2")]


def file(targets=MINIMAL, **changes):
    return {"version": 1, "name": "bundled", "profile": "embedded", "targets": targets, **changes}


def test_the_bundled_topology_has_the_promised_names_roles_and_nodes():
    found = [(t.name, t.role, t.node) for t in load_topology().targets]
    assert found == [
        ("gateway", "gateway", None),
        ("engine-a", "engine", "gpu-node-1"),
        ("engine-b", "engine", "gpu-node-2"),
        ("engine-small", "fallback-engine", "gpu-node-3"),
        ("embedder", "embedder", None),
        ("vector-store", "vector-store", None),
        ("cache", "cache", None),
        ("tools", "tool", None),
        ("agent", "agent", None),
        ("devices", "device", None),
    ]


def test_the_disaggregated_topology_has_prefill_and_decode_in_place_of_engines():
    topology = load_topology("embedded-pd")
    found = [(t.name, t.role) for t in topology.targets if t.component == "engine"]
    assert found == [
        ("prefill-a", "prefill"),
        ("decode-a", "decode"),
        ("decode-b", "decode"),
        ("engine-small", "fallback-engine"),
    ]
    assert topology.profile == "embedded-pd"


def test_every_path_of_a_producer_stands_behind_an_edge_of_its_own_and_peers_are_sent_there():
    topology = load_topology("embedded-pd")
    (prefill,), address = topology.of_role("prefill"), {name: f"via-{name}:1" for name in topology.endpoints()}
    direct = {name: f"{name}:2" for name in topology.endpoints()}
    config = component_config(topology, prefill, listen="h:1", address=address, data_dir="/d", direct=direct)
    kv = EngineConfig.from_json(config).kv_transfer
    assert (kv.side_channel, kv.side_channel_via) == ("prefill-a.side_channel:2", "via-prefill-a.side_channel:1")
    assert (kv.transfer, kv.transfer_via) == ("prefill-a.transfer:2", "via-prefill-a.transfer:1")


def test_the_gateway_of_a_disaggregated_stack_knows_who_computes_prompts_and_who_goes_on():
    topology = load_topology("embedded-pd")
    address = dict.fromkeys(topology.endpoints(), "h:1")
    config = component_config(topology, topology.targets[0], listen="127.0.0.1:1", address=address, data_dir="/d")
    gateway = GatewayConfig.from_config(config)
    assert [each.name for each in gateway.prefill] == ["prefill-a"]
    assert [each.name for each in gateway.engines] == ["decode-a", "decode-b"]


def test_the_fallback_engine_is_faster_in_every_cost():
    topology = load_topology()
    large, small = topology.of_role("engine")[0].settings, topology.of_role("fallback-engine")[0].settings
    assert all(small["cost"][key] < large["cost"][key] for key in large["cost"])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (file(version=2), "version 2, expected 1"),
        (file(colour="red"), "topology: unknown key 'colour'"),
        (file([*MINIMAL, {"name": "x", "rle": "engine"}]), "target 6: unknown key 'rle'; did you mean 'role'?"),
        (file([*MINIMAL, {"role": "engine"}]), "target 6: a target needs a name"),
        (file([*MINIMAL, {"name": "x", "role": "king"}]), "target x: role: 'king' is none of"),
        (
            file([*MINIMAL, {"name": "x", "role": "agent", "component": "agent", "disk_mib": "16MB"}]),
            "x: disk_mib: '16MB'",
        ),
        (file([*MINIMAL, MINIMAL[1]]), "two targets are named 'e1'"),
        (file([*MINIMAL, *CACHES]), "at most one target of role cache"),
        (file(MINIMAL[1:]), "exactly one target of role gateway"),
        (file([MINIMAL[0], *MINIMAL[2:]]), "at least one target of role engine"),
        ([], "topology: expected keys and values"),
    ],
)
def test_a_topology_that_makes_no_sense_is_refused_with_its_place(record, message):
    with pytest.raises(BadTopology, match=message.replace("?", r"\?")):
        parse_topology(record)


def test_the_gateway_learns_the_addresses_that_clients_use():
    topology = parse_topology(file())
    address = {name: f"127.0.0.1:{20000 + n}" for n, name in enumerate(t["name"] for t in MINIMAL)}
    config = component_config(topology, topology.targets[0], listen="127.0.0.1:1", address=address, data_dir="/d")
    assert config == {
        "name": "front",
        "listen": "127.0.0.1:1",
        "engines": [{"name": "e1", "url": "http://127.0.0.1:20001", "model": "m"}],
        "fallback": None,
        "model": "m",
        "embedder": "http://127.0.0.1:20002",
        "vector_store": "127.0.0.1:20003",
        "cache": None,
        "agents": None,
        "tools": "http://127.0.0.1:20004",
        "data_dir": "/d",
        "admin": "/d/admin.sock",
    }


def test_the_gateway_learns_where_the_cache_is():
    topology = parse_topology(file([*MINIMAL, CACHES[0]]))
    address = {target.name: f"127.0.0.1:{20000 + n}" for n, target in enumerate(topology.targets)}
    config = component_config(topology, topology.targets[0], listen="127.0.0.1:1", address=address, data_dir="/d")
    assert config["cache"] == "127.0.0.1:20005"


def test_an_engine_gets_its_settings_and_no_folder_the_tools_get_one():
    topology = parse_topology(file())
    engine = component_config(topology, topology.targets[1], listen="127.0.0.1:1", address={}, data_dir="/d")
    tools = component_config(topology, topology.targets[4], listen="127.0.0.1:2", address={}, data_dir="/d")
    assert engine == {"name": "e1", "listen": "127.0.0.1:1", "model": "m"}
    assert tools == {"name": "t", "listen": "127.0.0.1:2", "data_dir": "/d"}


def test_the_agents_learn_the_front_door_the_tools_and_a_token_each():
    targets = [*MINIMAL, {"name": "a", "role": "agent", "component": "agent"}]
    topology = parse_topology(file(targets))
    address = {name: f"127.0.0.1:{20000 + n}" for n, name in enumerate(t["name"] for t in targets)}
    given = {"listen": "127.0.0.1:1", "address": address, "data_dir": "/d", "secret": b"s"}
    config = component_config(topology, topology.targets[-1], **given)
    assert config == {
        "name": "a",
        "listen": "127.0.0.1:1",
        "gateway": f"http://{address['front']}",
        "tools": f"http://{address['t']}",
        "model": "m",
        "tokens": {name: agent_token(b"s", name) for name in ("support", "approver")},
        "data_dir": "/d",
    }
    assert f"http://{address['a']}" == component_config(topology, topology.targets[0], **given)["agents"]


def configs(*weaknesses):
    """Every configuration of the bundled stack, by component."""
    topology = load_topology()
    address = {target.name: f"127.0.0.1:{20000 + n}" for n, target in enumerate(topology.targets)}
    for target in topology.targets:
        config = component_config(topology, target, listen="127.0.0.1:1", address=address, data_dir="/d")
        yield target.component, plant(find_weaknesses(weaknesses), target.component, config)


@pytest.mark.parametrize("weaknesses", [(), *((weakness.name,) for weakness in WEAKNESSES)], ids=str)
def test_the_components_accept_what_they_are_given_with_every_weakness(weaknesses):
    for component, config in configs(*weaknesses):
        if component == "gateway":
            fallback = None if "fallback_not_wired" in weaknesses else "brownout-chat-small"
            assert getattr(GatewayConfig.from_config(config).fallback, "model", None) == fallback
        if component == "agent":
            assert AgentConfig.from_config(config).settings.waits.task_s > 0
        if component == "engine":
            assert EngineConfig.from_json(config).model == config["model"]


def test_an_engine_and_the_device_process_share_the_register_file_of_its_gpu():
    topology = load_topology()
    engine, devices = topology.of_role("engine")[0], topology.of_role("device")[0]
    made = [
        component_config(topology, target, listen="127.0.0.1:1", address={}, data_dir="/d", devices_dir="/s")
        for target in (engine, devices)
    ]
    assert made[0]["device"] == "/s/gpu-node-1-gpu0"
    assert [each["path"] for each in made[1]["devices"]] == [f"/s/gpu-node-{number}-gpu0" for number in (1, 2, 3)]
