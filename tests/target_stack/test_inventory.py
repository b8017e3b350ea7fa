"""The record that the harness reads."""

from __future__ import annotations

import json
from pathlib import Path

from target_stack.config import load_topology
from target_stack.edges import edges_of
from target_stack.inventory import TargetView, inventory_record, write_atomic


def record(ready=True, proxy="127.0.0.1:9"):
    topology = load_topology()
    views = [
        TargetView(
            t,
            "ready",
            (),
            (10 + n, 50 + n),
            f"127.0.0.1:{100 + n}",
            f"127.0.0.1:{200 + n}" if proxy else None,
            edges=[(edge, f"127.0.0.1:{200 + n}") for edge in edges_of(topology) if edge.name == t.name]
            if proxy
            else [],
        )
        for n, t in enumerate(topology.targets)
    ]
    return inventory_record(
        topology,
        views,
        ready=ready,
        weaknesses=["w"],
        supervisor=Path("/s/control.sock"),
        proxy={"admin": proxy, "kind": "brownout", "token_file": "/s/admin.token"} if proxy else None,
        token_file=Path("/s/admin.token"),
    )


def test_the_stack_says_what_it_is_and_whether_it_is_ready():
    assert record(ready=False)["stack"] == {
        "name": "bundled",
        "profile": "embedded",
        "environment": "test",
        "ready": False,
        "weaknesses": ["w"],
    }


def test_an_engine_has_all_its_handles():
    devices = next(target for target in record()["targets"] if target["role"] == "device")
    assert record()["targets"][1] == {
        "name": "engine-a",
        "role": "engine",
        "node": "gpu-node-1",
        "component": "engine",
        "model": "brownout-chat",
        "pids": [11, 51],
        "parts": {},
        "address": "127.0.0.1:101",
        "via": "127.0.0.1:201",
        "edges": [{"from": "gateway", "via": "127.0.0.1:201", "proxy": "engine-a"}],
        "metrics": "http://127.0.0.1:101/metrics",
        "events": None,
        "spans": "http://127.0.0.1:101/debug/spans",
        "wire": "http",
        "state": "ready",
        "holds": [],
        "burdens": [],
        "last_exit": None,
        "starts": 0,
        "handles": {
            "supervisor": "/s/control.sock",
            "process_group": 11,
            "proxy": {
                "admin": "127.0.0.1:9",
                "kind": "brownout",
                "token_file": "/s/admin.token",
                "name": "engine-a",
            },
            "device": {
                "admin": devices["address"],
                "token_file": "/s/admin.token",
                "id": "gpu-node-1-gpu0",
                "fidelity": "simulated device",
            },
        },
    }


def test_postgres_has_its_own_wire_and_no_metrics_page():
    store = record()["targets"][5]
    assert (store["wire"], store["metrics"]) == ("postgres", None)


def test_valkey_speaks_the_redis_protocol():
    cache = next(target for target in record()["targets"] if target["role"] == "cache")
    assert (cache["component"], cache["wire"], cache["metrics"]) == ("valkey", "redis", None)


def test_only_the_gateway_the_agents_and_the_devices_tell_events():
    assert [t["role"] for t in record()["targets"] if t["events"]] == ["gateway", "agent", "device"]


def test_an_engine_says_which_device_it_runs_on_and_who_knows_it():
    targets = {target["name"]: target for target in record()["targets"]}
    device = targets["engine-a"]["handles"]["device"]
    assert (device["id"], device["admin"]) == ("gpu-node-1-gpu0", targets["devices"]["address"])
    assert "device" not in targets["gateway"]["handles"]


def test_without_a_proxy_there_is_no_way_through_it():
    target = record(proxy=None)["targets"][0]
    assert target["via"] is None
    assert "proxy" not in target["handles"]


def test_a_dead_target_has_no_process_group():
    topology = load_topology()
    view = TargetView(topology.targets[0], "dead", ("lease",), (), "127.0.0.1:1", None)
    paths = {"supervisor": Path("/s"), "token_file": Path("/t")}
    made = inventory_record(topology, [view], ready=False, weaknesses=[], proxy=None, **paths)
    assert "process_group" not in made["targets"][0]["handles"]
    assert made["targets"][0]["holds"] == ["lease"]


def test_the_file_is_replaced_whole_and_nothing_else_stays(tmp_path):
    path = tmp_path / "inventory.json"
    write_atomic(path, {"n": 1})
    write_atomic(path, {"n": 2})
    assert json.loads(path.read_text()) == {"n": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["inventory.json"]


def test_whose_data_is_on_a_disk_of_its_own_says_where():
    topology = load_topology()
    data = {"folder": "/s/data", "limit_bytes": 1 << 20}
    view = TargetView(topology.targets[0], "ready", (), (), "127.0.0.1:1", None, data=data)
    found = inventory_record(
        topology, [view], ready=True, weaknesses=[], supervisor=Path("/s"), proxy=None, token_file=Path("/t")
    )
    assert found["targets"][0]["handles"]["data"] == data
    assert all("data" not in target["handles"] for target in record()["targets"])


def test_the_paths_of_a_producer_are_handles_each_with_the_edge_before_it():
    topology = load_topology("embedded-pd")
    (prefill,) = topology.of_role("prefill")
    paths = {"transfer": ("127.0.0.1:5", "127.0.0.1:6")}
    view = TargetView(prefill, "ready", (), (1, 2, 3), "127.0.0.1:1", None, parts={"core": 2, "worker": 3}, paths=paths)
    proxy = {"admin": "127.0.0.1:9", "kind": "brownout"}
    given = {"ready": True, "weaknesses": [], "supervisor": Path("/s/control.sock"), "proxy": proxy}
    given["token_file"] = Path("/s/token")
    (found,) = inventory_record(topology, [view], **given)["targets"]
    assert found["parts"] == {"core": 2, "worker": 3}
    assert found["handles"]["kv_paths"] == {
        "transfer": {
            "address": "127.0.0.1:5",
            "via": "127.0.0.1:6",
            "proxy": {**proxy, "name": "prefill-a.transfer"},
        }
    }
