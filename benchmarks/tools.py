"""What does a call to the tools cost, with our client and with the official SDK's? And the process that serves it?

    python benchmarks/tools.py [--calls 300]

One server (official SDK, stateless streamable HTTP, JSON replies) over a SQLite file, both clients in one run, call by
call in turn, so that their ratio holds on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "target_stack" / "tools"))

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from shop import AGENTS, Server

from target_stack.tools.client import open_tools

TICKET = {"order": "B-1003", "subject": "It leaks."}


async def _ms(call: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await call()
    return (time.perf_counter() - started) * 1000


async def measure(url: str, calls: int) -> dict[str, list[float]]:
    """Milliseconds of each call."""
    took: dict[str, list[float]] = {"read, ours": [], "read, SDK": [], "act, ours": [], "act, SDK": []}
    http = create_mcp_http_client(headers={"authorization": "Bearer support-token"})
    order = {"order": "B-1003"}
    async with (
        open_tools(url, "support-token") as ours,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as sdk,
    ):
        for n in range(calls):
            keys = f"o{n}", {"idempotency-key": f"s{n}"}
            took["read, ours"].append(await _ms(lambda: ours.call("order_status", order, within_s=5)))
            took["read, SDK"].append(await _ms(lambda: sdk.call_tool("order_status", order)))
            took["act, ours"].append(
                await _ms(lambda keys=keys: ours.call("open_ticket", TICKET, within_s=5, key=keys[0]))
            )
            took["act, SDK"].append(await _ms(lambda keys=keys: sdk.call_tool("open_ticket", TICKET, meta=keys[1])))
    await http.aclose()
    return took


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=300)
    calls = parser.parse_args().calls
    with TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        server = Server({"listen": listen, "data_dir": folder, "agents": AGENTS}).start()
        try:
            for what, took in asyncio.run(measure(server.url, calls)).items():
                p99 = statistics.quantiles(took, n=100)[98]
                print(f"{what:<10}  p50 {statistics.median(took):6.2f} ms   p99 {p99:6.2f} ms")
            status = Path(f"/proc/{server.process.pid}/status").read_text()
            rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            print(f"server      RSS {rss / 1024:.0f} MB after {2 * calls} side effects")
        finally:
            server.end()


if __name__ == "__main__":
    main()
