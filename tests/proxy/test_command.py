"""The process: flags, configuration, signals, a busy port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.proxy.command import parse_arguments
from tests.proxy.conftest import Start
from tests.proxy.peers import Admin, Client, Edge, Upstream


def test_toxiproxys_flags_are_read_with_one_dash_or_two() -> None:
    one = parse_arguments(["-host", "0.0.0.0", "-port", "1", "-seed", "3", "-proxy-metrics", "-runtime-metrics"])
    two = parse_arguments(["--host", "0.0.0.0", "--port", "1", "--seed", "3", "--proxy-metrics", "--runtime-metrics"])
    assert one == two
    assert (one.host, one.port, one.seed, one.strict) == ("0.0.0.0", 1, 3, False)


def test_the_default_address_is_toxiproxys() -> None:
    options = parse_arguments([])
    assert (options.host, options.port) == ("localhost", 8474)


@pytest.mark.system
def test_a_configuration_file_makes_its_proxies_at_start(
    start_proxy: Start, tmp_path: Path, upstream: Upstream
) -> None:
    config = tmp_path / "proxies.json"
    config.write_text(json.dumps([{"name": "c", "listen": "127.0.0.1:0", "upstream": upstream.address}]))
    admin = start_proxy("--config", str(config))
    _, proxy = admin.call("GET", "/proxies/c")
    with Edge(admin, "c", int(proxy["listen"].rpartition(":")[2])).connect() as client:
        client.ask()


@pytest.mark.system
@pytest.mark.parametrize("text", ["{", '[{"name": "a"}]', '[{"name": "a", "listen": "nonsense", "upstream": "b:1"}]'])
def test_a_bad_configuration_is_logged_and_no_reason_not_to_start(tmp_path: Path, text: str) -> None:
    config = tmp_path / "proxies.json"
    config.write_text(text)
    command = [sys.executable, "-m", "chaos.proxy", "-host", "127.0.0.1", "-port", "0", "-config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert "proxies.json" in process.stderr.readline()
        assert "admin API" in process.stderr.readline()
        process.terminate()
    assert process.returncode == 0


@pytest.mark.system
def test_a_busy_admin_port_is_an_error_in_one_line(admin: Admin) -> None:
    command = [sys.executable, "-m", "chaos.proxy", "-host", "127.0.0.1", "-port", str(admin.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"listen tcp 127.0.0.1:{admin.port}: bind: address already in use" in done.stderr


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_connections_open(start_proxy: Start, upstream: Upstream, number: int) -> None:
    """The fixture holds that the exit code is 0 and that there was no traceback."""
    admin = start_proxy()
    edge = admin.proxy(upstream.address)
    with edge.connect() as client:
        client.ask()
        edge.add("latency", latency=10_000)
        client.sock.sendall(b"held")
        os.kill(admin.pid, number)
        assert client.ending() == ("eof", 0)
    assert upstream.wait_for_ending()


@pytest.mark.system
def test_metrics_exist_only_with_a_flag(admin: Admin, start_proxy: Start) -> None:
    status, _ = raw(admin, "/metrics")
    assert status == 404
    status, text = raw(start_proxy("-runtime-metrics"), "/metrics")
    assert status == 200
    assert "process_open_fds" in text


@pytest.mark.system
def test_the_same_seed_spares_the_same_connections(start_proxy: Start, upstream: Upstream) -> None:
    def spared(admin: Admin) -> list[bool]:
        name = "same"
        body = {"name": name, "listen": "127.0.0.1:0", "upstream": upstream.address}
        _, proxy = admin.call("POST", "/proxies", body)
        edge = Edge(admin, name, int(proxy["listen"].rpartition(":")[2]))
        edge.add("limit_data", "upstream", toxicity=0.5, bytes=0)
        return [lives(edge.connect()) for _ in range(20)]

    first = spared(start_proxy("-seed", "5"))
    assert first == spared(start_proxy("-seed", "5"))
    assert set(first) == {True, False}


def lives(client: Client) -> bool:
    with client:
        client.sock.sendall(b"x")
        return client.read(1) == b"x"


def raw(admin: Admin, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(admin.host, admin.port, timeout=5)
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text
