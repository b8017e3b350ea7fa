"""What it costs to take every packet of a port from the kernel and give it back: a packet fault that does no harm.

    python benchmarks/packets.py [--rounds N]

Needs root and iptables; works in a network of its own. Both ways (direct, queued) are measured once per round, the
rounds are interleaved, and medians over rounds are compared.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

_CLONE_NEWNET = 0x40000000
_QUEUE, _MARK = 20_000, 1 << 20
REQUESTS = 2000
STREAM_BYTES = 100_000_000
_BLOCK = bytes(1 << 20)
_SAID = 100
_PLAIN, _QUEUED = "direct", "queued"


def serve(listener: socket.socket) -> None:
    """Echo what is small; a stream for who asks for one."""
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while asked := client.recv(_SAID):
            if asked[:1] != b"G":
                client.sendall(asked)
                continue
            for _ in range(STREAM_BYTES // len(_BLOCK)):
                client.sendall(_BLOCK)
            client.close()
            break


def trips_us(port: int) -> list[float]:
    """Round trips of a hundred bytes on one connection."""
    found = []
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(REQUESTS):
            asked = time.perf_counter()
            line.sendall(b"x" * _SAID)
            line.recv(_SAID)
            found.append((time.perf_counter() - asked) * 1e6)
    return sorted(found)


def megabytes_per_s(port: int) -> float:
    """One stream, as fast as it comes."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        began, received = time.perf_counter(), 0
        line.sendall(b"G")
        while data := line.recv(1 << 20):
            received += len(data)
        return received / (time.perf_counter() - began) / 1e6


def queue_rules(action: str, port: int) -> None:
    """Write the two rules of a packet fault, or take them away."""
    for chain, way in (("INPUT", "--dport"), ("POSTROUTING", "--sport")):
        rule = f"{chain} -p tcp {way} {port} -m mark ! --mark {_MARK}/{_MARK} -j NFQUEUE --queue-num {_QUEUE}"
        subprocess.run(["iptables", "-t", "mangle", action, *rule.split(), "--queue-bypass"], check=True)


def measure(rounds: int, port: int) -> dict[str, dict[str, float]]:
    """Medians over the rounds."""
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for way in (_PLAIN, _QUEUED):
            if way == _QUEUED:
                queue_rules("-I", port)
            trips = trips_us(port)
            figures = {"p50 us": trips[len(trips) // 2], "p99 us": trips[len(trips) * 99 // 100]}
            for name, value in {**figures, "MB/s": megabytes_per_s(port)}.items():
                found.setdefault(way, {}).setdefault(name, []).append(value)
            if way == _QUEUED:
                queue_rules("-D", port)
    return {way: {name: statistics.median(values) for name, values in each.items()} for way, each in found.items()}


def alone() -> None:
    """This process gets a network of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network of our own; are you root?")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    alone()
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        server = multiprocessing.get_context("fork").Process(target=serve, args=(listener,), daemon=True)
        server.start()
        warrant = Path(folder) / "warrant"
        edges = [{"inside": None, "queue": _QUEUE}]
        warrant.write_text(json.dumps({"link": "clear", "given": {}, "seed": 1, "mark": _MARK, "edges": edges}))
        subprocess.run([sys.executable, "-m", "chaos.saboteurs", "packets", str(warrant)], check=True)
        found = measure(rounds, listener.getsockname()[1])
        server.terminate()
        server.join()
    plain, queued = found[_PLAIN], found[_QUEUED]
    print(f"{'':<10}" + "".join(f"{name:>12}" for name in plain))
    for way, figures in found.items():
        print(f"{way:<10}" + "".join(f"{value:>12.0f}" for value in figures.values()))
    added = queued["p50 us"] - plain["p50 us"]
    print(f"a round trip of four packets takes {added:.0f} us longer; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
