"""What passes a real proxy process on loopback, as it was seen of a real Toxiproxy. Times are bounded loosely."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.conftest import Start
from tests.proxy.peers import Admin, Client, Edge, Upstream

pytestmark = pytest.mark.system

HELD_S = 0.15
HELD_MS = 150
LONG_S = 8  # longer than any hiccup of a busy machine


@pytest.fixture
def edge(admin: Admin, upstream: Upstream) -> Iterator[Edge]:
    edge = admin.proxy(upstream.address)
    yield edge
    admin.call("DELETE", f"/proxies/{edge.name}")


@pytest.fixture
def client(edge: Edge) -> Iterator[Client]:
    """An open, used connection."""
    with edge.connect() as client:
        client.ask()
        yield client


def free_descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def test_megabytes_pass_unchanged_in_both_directions(edge: Edge) -> None:
    data = os.urandom(2 << 20).hex().encode()
    with edge.connect() as client:
        sender = threading.Thread(target=client.sock.sendall, args=(data,))
        sender.start()
        assert client.read(len(data)) == data
        sender.join()


def test_latency_acts_on_an_open_connection_and_follows_updates(edge: Edge, client: Client) -> None:
    toxic = edge.add("latency", latency=HELD_MS)
    assert client.ask() >= HELD_S
    edge.update(toxic, latency=2 * HELD_MS)
    assert client.ask() >= 2 * HELD_S
    edge.update(toxic, latency=1000 * LONG_S)
    edge.remove(toxic)
    assert client.ask() < LONG_S


def test_latencies_of_both_directions_add_up(edge: Edge, client: Client) -> None:
    edge.add("latency", latency=HELD_MS)
    edge.add("latency", "upstream", latency=HELD_MS)
    assert client.ask() >= 2 * HELD_S


def test_connecting_is_not_delayed(edge: Edge) -> None:
    edge.add("latency", latency=1000 * LONG_S)
    started = time.monotonic()
    with edge.connect():
        assert time.monotonic() - started < LONG_S


@pytest.mark.parametrize("change", ["update", "remove"])
def test_a_held_chunk_is_released_when_its_toxic_changes(edge: Edge, client: Client, change: str) -> None:
    toxic = edge.add("latency", latency=5000)
    client.sock.sendall(b"held")
    time.sleep(0.05)
    edge.update(toxic, latency=6000) if change == "update" else edge.remove(toxic)
    assert client.read(4) == b"held"


def test_pipelined_chunks_keep_their_order_under_jitter(edge: Edge, client: Client) -> None:
    edge.add("latency", latency=150, jitter=100)
    sent = b"".join(b"%02d" % n for n in range(20))
    started = time.monotonic()
    for n in range(20):
        client.sock.sendall(b"%02d" % n)
        time.sleep(0.002)
    assert client.read(len(sent)) == sent
    assert time.monotonic() - started < 20 * 0.15, "delays of pipelined chunks overlap"


def test_disabling_closes_open_connections_and_refuses_new_ones_until_enabled_again(edge: Edge, client: Client) -> None:
    edge.set(enabled=False)
    assert client.ending() == ("eof", 0)
    with pytest.raises(ConnectionRefusedError):
        edge.connect()
    edge.set(enabled=True)
    with edge.connect() as again:
        again.ask()


def test_toxics_stay_while_a_proxy_is_off(edge: Edge) -> None:
    edge.add("latency", latency=HELD_MS)
    edge.set(enabled=False)
    edge.set(enabled=True)
    with edge.connect() as client:
        assert client.ask() >= HELD_S


def test_deleting_in_the_middle_of_a_transfer_ends_it(edge: Edge, client: Client) -> None:
    client.sock.sendall(b"give 50000000")
    client.read(1000)
    edge.delete()
    how, rest = client.ending()
    assert how == "eof"
    assert rest < 49_000_000


def test_a_changed_upstream_drops_connections_and_serves_new_ones(edge: Edge, client: Client) -> None:
    with Upstream() as other:
        edge.set(upstream=other.address)
        assert client.ending() == ("eof", 0)
        with edge.connect() as again:
            again.ask()


def test_a_refusing_upstream_looks_like_accept_then_end(edge: Edge) -> None:
    edge.set(upstream="127.0.0.1:1")
    with edge.connect() as client:
        assert client.ending() == ("eof", 0)


@pytest.mark.parametrize("upstream_address", ["nonsense", "127.0.0.1:99999", "host.invalid:80"])
def test_an_upstream_that_cannot_be_found_looks_the_same(edge: Edge, upstream_address: str) -> None:
    edge.set(upstream=upstream_address)
    with edge.connect() as client:
        assert client.ending(20) == ("eof", 0)


def test_a_host_name_as_upstream_is_looked_up(edge: Edge, upstream: Upstream) -> None:
    edge.set(upstream="localhost:" + upstream.address.rpartition(":")[2])
    with edge.connect() as client:
        client.ask()


def test_a_half_closed_client_still_gets_its_answer(edge: Edge) -> None:
    with edge.connect() as client:
        client.sock.sendall(b"late")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.read(10) == b"late reply"
        assert client.ending() == ("eof", 0)


def test_strict_loses_the_answer_of_a_half_closed_client(start_proxy: Start, upstream: Upstream) -> None:
    edge = start_proxy("--strict").proxy(upstream.address)
    with edge.connect() as client:
        client.sock.sendall(b"late")
        client.sock.shutdown(socket.SHUT_WR)
        assert client.ending() == ("eof", 0)


def test_a_client_that_resets_while_idle_is_a_plain_end_to_the_upstream(edge: Edge, upstream: Upstream) -> None:
    client = edge.connect()
    client.ask()
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sock.close()
    assert upstream.wait_for_ending() == ("eof", 1)


def test_timeout_swallows_data_then_closes(edge: Edge, client: Client) -> None:
    edge.add("timeout", timeout=HELD_MS)
    started = time.monotonic()
    client.sock.sendall(b"lost")
    assert client.ending() == ("eof", 0)
    assert time.monotonic() - started >= HELD_S / 2


def test_a_black_hole_holds_until_removed_which_closes_it(edge: Edge, client: Client) -> None:
    toxic = edge.add("timeout", timeout=0)
    client.sock.sendall(b"lost")
    assert client.is_open()
    edge.remove(toxic)
    assert client.ending() == ("eof", 0)
    with edge.connect() as again:
        again.ask()


def test_a_timeout_that_was_never_active_on_a_connection_leaves_it_open(edge: Edge, client: Client) -> None:
    edge.remove(edge.add("timeout", toxicity=0, timeout=0))
    client.ask()


def test_chunks_keep_a_timeout_from_closing(edge: Edge, client: Client) -> None:
    edge.add("timeout", "upstream", timeout=400)
    for _ in range(6):
        client.sock.sendall(b"#")
        assert client.is_open(0.1)


def test_reset_peer_resets_a_new_connection_on_its_first_data(edge: Edge, upstream: Upstream) -> None:
    edge.add("reset_peer", "upstream")
    with edge.connect() as client:
        assert client.is_open(), "an idle connection is not reset"
        client.sock.sendall(b"x")
        assert client.ending() == ("reset", 0)
    assert upstream.wait_for_ending()[0] == "reset"


def test_reset_peer_ends_an_older_connection_in_order(edge: Edge, client: Client) -> None:
    edge.add("reset_peer")
    client.sock.sendall(b"x")
    assert client.ending() == ("eof", 0)


def test_reset_peer_without_toxicity_resets_nobody(edge: Edge, upstream: Upstream) -> None:
    edge.add("reset_peer", toxicity=0)
    with edge.connect() as client:
        client.ask()
    assert upstream.wait_for_ending() == ("eof", 1)


def test_strict_resets_even_without_toxicity(start_proxy: Start, upstream: Upstream) -> None:
    edge = start_proxy("--strict").proxy(upstream.address)
    edge.add("reset_peer", toxicity=0)
    with edge.connect() as client:
        client.ask()
    assert upstream.wait_for_ending()[0] == "reset"


def test_limit_data_passes_exactly_so_many_bytes_and_counts_across_updates(edge: Edge) -> None:
    toxic = edge.add("limit_data", bytes=1500)
    with edge.connect() as client:
        client.sock.sendall(b"give 1000")
        assert len(client.read(1000)) == 1000
        edge.update(toxic, bytes=1800)
        client.sock.sendall(b"give 5000")
        assert client.ending() == ("eof", 800)


def test_slow_close_delays_only_the_end(edge: Edge, client: Client) -> None:
    edge.add("slow_close", delay=HELD_MS)
    assert client.ask() < HELD_S
    started = time.monotonic()
    client.sock.sendall(b"end")
    assert client.ending() == ("eof", 0)
    assert time.monotonic() - started >= HELD_S


def test_bandwidth_holds_its_rate_and_removal_releases_the_rest(edge: Edge, client: Client) -> None:
    toxic = edge.add("bandwidth", rate=1000)
    assert 0.28 <= client.ask(b"give 300000", 300000) < 0.6
    edge.update(toxic, rate=10)
    client.sock.sendall(b"give 3000000")
    client.read(1000)
    edge.remove(toxic)
    assert len(client.read(2999000)) == 2999000


@pytest.mark.parametrize("rate", [0, -1])
def test_bandwidth_without_a_rate_stalls_until_it_is_removed(edge: Edge, client: Client, rate: int) -> None:
    toxic = edge.add("bandwidth", rate=rate)
    client.sock.sendall(b"hello")
    assert client.is_open()
    edge.remove(toxic)
    client.sock.settimeout(5)
    assert client.read(5) == b"hello"


def test_slicer_cuts_and_pauses(edge: Edge, client: Client) -> None:
    edge.add("slicer", average_size=1000, size_variation=0, delay=10_000)
    client.sizes.clear()
    assert client.ask(b"give 8000", 8000) >= 0.07
    # Who reads late finds several slices at once, but never a part of one.
    assert sum(client.sizes) == 8000
    assert {size % 1000 for size in client.sizes} == {0}


@pytest.mark.parametrize("size", [0, -5])
def test_slicer_with_a_size_that_crashes_toxiproxy_sends_single_bytes(edge: Edge, client: Client, size: int) -> None:
    edge.add("slicer", average_size=size)
    assert client.ask(b"give 100", 100) < 5


def test_toxicity_is_drawn_per_connection(edge: Edge) -> None:
    edge.add("timeout", toxicity=0.5, timeout=1)
    untouched = 0
    for _ in range(60):
        with edge.connect() as client:
            untouched += client.is_open(0.03)
    assert 12 <= untouched <= 48, "three sigma around 30"


def test_toxics_act_in_the_order_in_which_they_were_added(edge: Edge, client: Client) -> None:
    """The limit comes first, so what it lets through is still delayed, and only then the end follows."""
    limit = edge.add("limit_data", bytes=100)
    edge.add("latency", latency=HELD_MS)
    started = time.monotonic()
    client.sock.sendall(b"give 1000")
    assert client.ending() == ("eof", 100)
    assert time.monotonic() - started >= HELD_S
    edge.remove(limit)
    with edge.connect() as again:
        assert again.ask(b"give 1000", 1000) >= HELD_S


def test_hits_say_what_a_toxic_has_touched(edge: Edge, client: Client) -> None:
    edge.add("latency", latency=1)
    client.ask(b"four", 4)
    _, hits = edge.admin.call("GET", "/brownout/hits")
    touched = hits[edge.name]["toxics"]["latency_downstream"]
    assert {name: touched[name] for name in ("connections", "chunks", "bytes", "ends", "requests")} == {
        "connections": 1,
        "chunks": 1,
        "bytes": 4,
        "ends": 0,
        "requests": 0,
    }


def test_hundreds_of_connections_leave_no_descriptor_behind(edge: Edge, upstream: Upstream) -> None:
    with edge.connect() as client:
        client.ask()
        before = free_descriptors(edge.admin.pid)
        edge.add("latency", latency=1, jitter=1)
        for n in range(400):
            with edge.connect() as other:
                if n % 3:
                    other.ask()
        with upstream.ended:
            assert upstream.ended.wait_for(lambda: len(upstream.endings) == 400, 10)
        deadline = time.monotonic() + 5
        while free_descriptors(edge.admin.pid) > before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert free_descriptors(edge.admin.pid) == before
