"""Strangers' clients drive our server unchanged, as they drive a Toxiproxy."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from toxiproxy import Toxiproxy
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from tests.real.proxy.servers import tool

pytestmark = pytest.mark.real

HERE = Path(__file__).parent
UPSTREAM = "127.0.0.1:9"


def told(*command: object) -> str:
    """What a program prints. Raises AssertionError."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def last_json(text: str) -> Any:
    """The last line."""
    return json.loads(text.strip().splitlines()[-1])


def test_the_go_client_of_toxiproxy_itself(either: str) -> None:
    def cli(*words: str) -> str:
        return told(tool("toxiproxy", "toxiproxy-cli"), "--host", f"http://{either}", *words)

    assert "Created new proxy go" in cli("create", "--listen", "127.0.0.1:0", "--upstream", UPSTREAM, "go")
    assert "go" in cli("list")
    assert "Added downstream latency toxic 'slow'" in cli(
        "toxic", "add", "--type", "latency", "--toxicName", "slow", "--attribute", "latency=50", "go"
    )
    assert "latency=50" in cli("inspect", "go")
    assert "Removed toxic 'slow'" in cli("toxic", "delete", "--toxicName", "slow", "go")
    assert "disabled" in cli("toggle", "go")
    assert "Deleted proxy go" in cli("delete", "go")


def test_toxiproxy_python(either: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of it on our server alone: tests/proxy/test_clients.py."""
    host, _, port = either.rpartition(":")
    monkeypatch.setattr(APIConsumer, "host", host)
    monkeypatch.setattr(APIConsumer, "port", int(port))
    client = Toxiproxy()
    assert client.running()
    proxy = client.create(upstream=UPSTREAM, name="python")
    with pytest.raises(ProxyExists):
        client.create(upstream=UPSTREAM, name="python")
    proxy.add_toxic(type="latency", attributes={"latency": 50})
    assert {"latency": 50, "jitter": 0} == proxy.get_toxic("latency_downstream").attributes
    with pytest.raises(InvalidToxic):
        proxy.add_toxic(type="nonsense")
    proxy.disable()
    assert client.reset()
    again = client.get_proxy("python")
    assert (True, {}) == (again.enabled, again.toxics())
    with pytest.raises(NotFound):
        again.destroy_toxic("latency_downstream")
    client.destroy_all()
    assert {} == client.proxies()


def test_chaostoolkit_toxiproxy(either: str) -> None:
    python = tool("chaostoolkit", "bin", "python")
    seen = last_json(told(python, HERE / "drive_chaostoolkit.py", either, UPSTREAM))
    assert [True] * 3 == [seen[step] for step in ("made", "exists", "gone")]
    assert (False, True, []) == (seen["off"], seen["on"], seen["toxics"])


def test_toxiproxy_node_client(either: str) -> None:
    client = tool("node", "node_modules", "toxiproxy-node-client") / "dist" / "index.js"
    seen = last_json(told("node", HERE / "drive.mjs", client, f"http://{either}", UPSTREAM))
    assert {"latency": 50, "left": 0, "enabled": False, "gone": True} == seen
