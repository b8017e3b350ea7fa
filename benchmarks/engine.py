"""What does a streamed token cost the engine? CPU of API server and core, per token, from the kernel's accounts.

    python benchmarks/engine.py [--streams 8] [--tokens 400] [--rounds 3]

One engine in its usual two processes; the client is a process of its own that reads bytes and looks at nothing, so that
only the engine is measured. CPU time does not depend on who else uses the machine, as wall time would; caches do, so
the least of some rounds is printed too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_ASK = {"messages": [{"role": "user", "content": "hello"}], "ignore_eos": True, "stream": True}


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def read_streams(port: int, streams: int, tokens: int) -> None:
    """Ask for all at once, read each to its end."""
    opened = []
    for _ in range(streams):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({**_ASK, "max_tokens": tokens})
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        opened.append(connection)
    for connection in opened:
        assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
        connection.close()


def start() -> tuple[subprocess.Popen[bytes], int]:
    """An engine whose steps take as long as the bundled stack's."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = {"name": "bench", "listen": f"127.0.0.1:{port}", "max_num_seqs": 64}
    process = subprocess.Popen([sys.executable, "-m", "target_stack.serve", "engine", json.dumps(config)])
    for _ in range(1000):
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=1).request("GET", "/health")
        except OSError:
            time.sleep(0.02)
        else:
            return process, port
    raise SystemExit("the engine did not start")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("streams", 8), ("tokens", 400), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    process, port = start()
    core = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
    read_streams(port, 2, 20)
    print(f"{'API us/token':>14} {'core us/token':>14} {'together':>10}")
    rounds = []
    for _ in range(options.rounds):
        before = cpu_s(process.pid), cpu_s(core)
        reader = [sys.executable, __file__, "--read", str(port), str(options.streams), str(options.tokens)]
        subprocess.run(reader, check=True)
        us = 1e6 / (options.streams * options.tokens)
        api, own = ((cpu_s(pid) - was) * us for pid, was in zip((process.pid, core), before, strict=True))
        rounds.append(api + own)
        print(f"{api:14.0f} {own:14.0f} {api + own:10.0f}")
    print(f"least {min(rounds):.0f} us/token, with {options.streams} streams of {options.tokens} tokens")
    process.terminate()
    process.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read_streams(*map(int, sys.argv[2:]))
    else:
        main()
