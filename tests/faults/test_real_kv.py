"""The contract of the faults between prefill and decode, with a real prefill engine behind a real proxy."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.kv_reference import KvReference
from chaos.faults.kv_transfer_refused import KvTransferRefused
from chaos.faults.kv_transfer_slow import KvTransferSlow
from chaos.faults.kv_transfer_timeout import KvTransferTimeout
from chaos.faults.process_stall import ProcessStall
from chaos.inventory import Target
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Duration
from tests.faults.machine import edge_to
from tests.loopback import free_address

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def running(address: str, *words: str) -> Iterator[int]:
    argv = [sys.executable, "-m", *words]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        host, port = address.split(":")
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection((host, int(port))):
                break
            time.sleep(0.02)
        yield process.pid
        process.kill()


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.fixture(scope="module")
def prefill() -> Iterator[Target]:
    admin, address, side_channel, transfer = (free_address() for _ in range(4))
    kv = {"role": "producer", "side_channel": side_channel, "transfer": transfer, "lease_s": 1.0}
    config = {"name": "prefill-t", "listen": address, "model": "tiny", "kv_transfer": kv}
    host, port = admin.split(":")
    with (
        running(admin, "chaos.proxy", "--host", host, "--port", port),
        running(address, "target_stack.serve", "engine", json.dumps(config)) as pid,
    ):
        core = child_of(pid)
        parts = {"core": core, "worker": child_of(core)}
        made = asyncio.run(_with_edges(admin, address, {"side_channel": side_channel, "transfer": transfer}))
        yield replace(made, role="prefill", pids=(pid, *parts.values()), parts=parts)


async def _with_edges(admin: str, address: str, paths: dict[str, str]) -> Target:
    async with real_host() as host:
        made = await edge_to(host, admin, address, "prefill-t")
        edges = {path: await edge_to(host, admin, at, f"prefill-t.{path}") for path, at in paths.items()}
    handles = {path: {"address": e.address, "via": e.via, "proxy": e.handles["proxy"]} for path, e in edges.items()}
    return replace(made, handles={**made.handles, "kv_paths": handles})


@pytest.mark.parametrize(
    "fault",
    [
        KvReference(),
        KvReference(damage="stale"),
        KvTransferRefused(path="side_channel"),
        KvTransferSlow(latency=Duration(0.3)),
        KvTransferTimeout(),
        ProcessStall(part="worker"),
    ],
    ids=repr,
)
def test_a_fault_between_prefill_and_decode_keeps_its_contract_on_the_real_machine(
    fault: Fault, prefill: Target
) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_negative_control(fault, (prefill,), host)
            await check_fault(fault, (prefill,), host, within_s=10.0)

    asyncio.run(main())
