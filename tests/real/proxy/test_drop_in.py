"""A real Toxiproxy in our proxy's place: started by us, or one that runs already."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.proxy.servers import ROOT, tool

sys.path.insert(0, str(ROOT / "tests" / "system"))

from drill import Drill

pytestmark = pytest.mark.real


@pytest.fixture
def drill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    """A state folder with a short path, whose PATH knows the server that `make tools` has built."""
    folder: Path = tmp_path_factory.mktemp("d")
    path = f"{tool('toxiproxy', 'toxiproxy-server').parent}{os.pathsep}{os.environ['PATH']}"
    drill = Drill(folder, {"PATH": path})
    yield drill
    drill.call("recover")
    drill.call("down")


def proxies(admin: str) -> dict[str, object]:
    """What a server has."""
    connection = http.client.HTTPConnection(admin, timeout=5)
    connection.request("GET", "/proxies")
    found: dict[str, object] = json.loads(connection.getresponse().read())
    connection.close()
    return found


def test_a_toxiproxy_on_path_is_started_in_our_place(drill: Drill) -> None:
    done = drill.run("net_latency", "--proxy", "toxiproxy")
    assert 0 == done.returncode, done.stdout + done.stderr
    kinds = [line["kind"] for line in drill.journal()]
    assert "fault_confirmed" in kinds


def test_a_toxiproxy_that_runs_already_drives_the_edges_and_is_left_as_it_was(drill: Drill, toxiproxy: str) -> None:
    up = drill.call("up", "--proxy", f"toxiproxy://{toxiproxy}")
    assert 0 == up.returncode, up.stderr
    assert {"engine-a", "vector-store"} <= set(proxies(toxiproxy))
    assert 0 == drill.run("net_down").returncode
    refused = drill.run("stream_cut")
    assert 64 == refused.returncode, refused.stdout + refused.stderr
    assert "the proxy before it is a Toxiproxy, which has no toxic `sse_cut`" in refused.stderr
    assert 0 == drill.call("down").returncode
    assert {} == proxies(toxiproxy)


def test_a_server_that_is_not_there_is_named_with_the_remedy(drill: Drill) -> None:
    lacking = Drill(drill.folder, {"PATH": "/nonexistent"})
    done = lacking.run("net_down", "--proxy", "toxiproxy")
    assert 64 == done.returncode
    assert "there is no toxiproxy-server on PATH; `make tools` builds one" in done.stderr
