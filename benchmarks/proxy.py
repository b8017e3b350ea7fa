"""What the fault proxy costs, idle and with one latency toxic: requests per second, throughput and added latency, as
ratios measured in one run.

    python benchmarks/proxy.py [--toxiproxy PATH] [--rounds N] [--latency-ms N]

Machines differ and are noisy, so every way (direct, ours, a real Toxiproxy if there is one) is measured once per round,
the rounds are interleaved, and medians over rounds are compared. Client and upstream are small processes of their own.
What is added is the time of one request on a kept connection less that of a direct one, and less the toxic's delay.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import select
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import truediv
from pathlib import Path

REQUEST = b"GET /ping HTTP/1.1\r\nHost: upstream\r\n\r\n"
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GIVE = b"GIVE"
CONNECTIONS = 32
STREAM_BYTES = 200_000_000
WORK = ("req/s", "MB/s")
LATENCIES = ("p50 us", "p99 us")
_BLOCK = bytes(1 << 20)


@dataclass
class Way:
    """One way to the upstream and what was measured on it."""

    name: str
    port: int
    measured: dict[str, list[float]]
    pid: int | None = None

    def median(self, name: str) -> float:
        """Of what was measured in all rounds."""
        return statistics.median(self.measured[name])

    def cpu_s(self) -> float:
        """CPU seconds that its proxy has used so far; unlike the clock they do not depend on who else is running."""
        if self.pid is None:
            return 0.0
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def upstream(listener: socket.socket) -> None:
    """Answers every request with two bytes; `GIVE` with a long stream. One epoll loop, so it costs little."""
    epoll = select.epoll()
    listener.setblocking(False)
    epoll.register(listener.fileno(), select.EPOLLIN)
    clients: dict[int, socket.socket] = {}
    while True:
        for fd, _ in epoll.poll():
            if fd == listener.fileno():
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients[client.fileno()] = client
                epoll.register(client.fileno(), select.EPOLLIN)
                continue
            if not _serve(clients[fd]):
                epoll.unregister(fd)
                clients.pop(fd).close()


def _serve(client: socket.socket) -> bool:
    """Answer what came in; False when the connection is over."""
    with contextlib.suppress(ConnectionError):
        data = client.recv(65536)
        if data == GIVE:
            for _ in range(STREAM_BYTES // len(_BLOCK)):
                client.sendall(_BLOCK)
        elif data:
            client.sendall(REPLY)
            return True
    return False


def connect(port: int) -> socket.socket:
    """A connection without Nagle."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def round_trips_us(port: int, seconds: float) -> list[float]:
    """One request after the other on one kept connection."""
    times: list[float] = []
    with connect(port) as sock:
        end = time.perf_counter() + seconds
        while (started := time.perf_counter()) < end:
            sock.sendall(REQUEST)
            sock.recv(4096)
            times.append((time.perf_counter() - started) * 1e6)
    return sorted(times[len(times) // 20 :])


def requests_per_s(port: int, seconds: float) -> float:
    """Closed loop over many kept connections, from one epoll loop."""
    epoll = select.epoll()
    socks = {sock.fileno(): sock for sock in (connect(port) for _ in range(CONNECTIONS))}
    for fd, sock in socks.items():
        epoll.register(fd, select.EPOLLIN)
        sock.sendall(REQUEST)
    done = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        for fd, _ in epoll.poll():
            socks[fd].recv(4096)
            socks[fd].send(REQUEST)
            done += 1
    elapsed = time.perf_counter() - started
    for sock in socks.values():
        sock.close()
    epoll.close()
    return done / elapsed


def megabytes_per_s(port: int) -> float:
    """One long download, thrown away by the kernel so that the client costs nothing."""
    with connect(port) as sock:
        started = time.perf_counter()
        sock.sendall(GIVE)
        total = 0
        while count := sock.recv_into(_SINK, 0, socket.MSG_TRUNC):
            total += count
        return total / 1e6 / (time.perf_counter() - started)


_SINK = bytearray(4 << 20)


def measure(way: Way, seconds: float) -> None:
    """One round on one way."""
    times = round_trips_us(way.port, seconds)
    cpu_s = way.cpu_s()
    rate = requests_per_s(way.port, seconds)
    results = {
        "req/s": rate,
        "CPU us/req": (way.cpu_s() - cpu_s) / (rate * seconds) * 1e6,
        "MB/s": megabytes_per_s(way.port),
        "p50 us": times[len(times) // 2],
        "p99 us": times[len(times) * 99 // 100],
    }
    for name, value in results.items():
        way.measured.setdefault(name, []).append(value)


def call(admin: int, path: str, body: object) -> dict[str, str]:
    """One call of the Toxiproxy API; both servers speak it."""
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=5)
    connection.request("POST", path, json.dumps(body))
    answer: dict[str, str] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


@contextlib.contextmanager
def server(command: list[str], admin: int) -> Iterator[int]:
    """A proxy server process that answers on its admin port; its pid."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), connect(admin):
                break
            time.sleep(0.02)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def proxied(admin: int, upstream_port: int, latency_ms: int | None = None, name: str = "bench") -> int:
    """The port of a new proxy in front of the upstream, with one latency toxic if there is a latency."""
    proxy = {"name": name, "listen": "127.0.0.1:0", "upstream": f"127.0.0.1:{upstream_port}"}
    port = int(call(admin, "/proxies", proxy)["listen"].rpartition(":")[2])
    if latency_ms is not None:
        call(admin, f"/proxies/{name}/toxics", {"type": "latency", "attributes": {"latency": latency_ms}})
    return port


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def table(ways: list[Way], delay_ms: float) -> list[str]:
    """Medians over the rounds; in brackets the median of the per-round ratios to the last way."""
    names, last = list(ways[0].measured), ways[-1]
    lines = [f"{'':12}" + "".join(f"{name:>20}" for name in (*names, "added p50 us", "added p99 us"))]
    for way in ways:
        cells = []
        for name in names:
            pairs = zip(way.measured[name], last.measured[name], strict=True)
            ratio = statistics.median(mine / (other or 1) for mine, other in pairs)
            cells.append(f"{way.median(name):>12.0f} (x{ratio:5.2f})")
        added = [] if way is ways[0] else [f"{added_us(way, ways[0], name, delay_ms):.0f}" for name in LATENCIES]
        lines.append(f"{way.name:12}" + "".join(f"{cell:>20}" for cell in (*cells, *added)))
    return [*lines, f"ratios are to {last.name}, round by round"]


def added_us(way: Way, direct: Way, name: str, delay_ms: float) -> float:
    """What a proxy adds beside the delay that it was asked for."""
    return way.median(name) - direct.median(name) - delay_ms * 1e3


def goals(ways: list[Way], delay_ms: float) -> str:
    """How many times as good as the last way ours is: more work in the same time, or less time added. 1.0 is equal."""
    direct, ours, last = ways
    work = {name: statistics.median(map(truediv, ours.measured[name], last.measured[name])) for name in WORK}
    spared = {
        f"added {name.removesuffix(' us')}": added_us(last, direct, name, delay_ms)
        / max(1.0, added_us(ours, direct, name, delay_ms))
        for name in LATENCIES
    }
    figures = {**work, **spared}
    told = ", ".join(f"{name} {value:.2f}{'' if value >= 1 else ' (BELOW)'}" for name, value in figures.items())
    return f"times as good as {last.name}: {told}"


def built() -> Path | None:
    """The real Toxiproxy that `make tools` builds, or one on PATH, if there is one."""
    here = Path(__file__).parents[1] / "build" / "tools" / "toxiproxy" / "toxiproxy-server"
    found = str(here) if here.is_file() else shutil.which(here.name)
    return Path(found) if found else None


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--toxiproxy", type=Path, default=built(), help="compare with it; default what `make tools` built"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="per measurement")
    parser.add_argument("--latency-ms", type=int, default=5, help="of the toxic (0: the bare cost of a chain)")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    peer = multiprocessing.get_context("fork").Process(target=upstream, args=(listener,), daemon=True)
    peer.start()
    direct = int(listener.getsockname()[1])
    commands = {"brownout": [sys.executable, "-m", "chaos.proxy"]}
    if options.toxiproxy:
        commands["toxiproxy"] = [str(options.toxiproxy)]
    for latency_ms in (None, options.latency_ms):
        with started(commands, direct, latency_ms) as ways:
            for _ in range(options.rounds):
                for way in ways:
                    measure(way, options.seconds)
        delay_ms = latency_ms or 0
        print("idle" if latency_ms is None else f"one latency toxic of {latency_ms} ms")
        print("\n".join(table(ways, delay_ms)))
        if options.toxiproxy:
            print(goals(ways, delay_ms))
    peer.terminate()


@contextlib.contextmanager
def started(commands: Mapping[str, list[str]], direct: int, latency_ms: int | None) -> Iterator[list[Way]]:
    """The ways to the upstream: straight, then through each server."""
    ways = [Way("direct", direct, {})]
    with contextlib.ExitStack() as running:
        for name, command in commands.items():
            admin = free_port()
            pid = running.enter_context(server([*command, "-host", "127.0.0.1", "-port", str(admin)], admin))
            ways.append(Way(name, proxied(admin, direct, latency_ms), {}, pid))
        yield ways


if __name__ == "__main__":
    main()
