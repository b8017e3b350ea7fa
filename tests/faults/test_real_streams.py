"""The contract of the faults on requests and streams, with a real proxy process and a real HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.http_body import HttpBody
from chaos.faults.http_delay import HttpDelay
from chaos.faults.http_reset import HttpReset
from chaos.faults.http_status import HttpStatus
from chaos.faults.metrics_freeze import MetricsFreeze
from chaos.faults.metrics_gap import MetricsGap
from chaos.faults.net_partition import NetPartition
from chaos.faults.stream_cut import StreamCut
from chaos.faults.stream_drop_done import StreamDropDone
from chaos.faults.stream_duplicate import StreamDuplicate
from chaos.faults.stream_error_frame import StreamErrorFrame
from chaos.faults.stream_garble import StreamGarble
from chaos.faults.stream_slow_first import StreamSlowFirst
from chaos.faults.stream_stall import StreamStall
from chaos.faults.stream_truncate_tool_call import StreamTruncateToolCall
from chaos.inventory import Edge
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Duration, Ratio
from tests.faults.machine import EDGES, edge_to, serving_engine

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with serving_engine() as address:
        yield address


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "chaos.proxy", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as proxy:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.02)
        yield f"127.0.0.1:{port}"
        proxy.kill()


@pytest.mark.parametrize(
    "fault",
    [
        HttpReset(share=Ratio(0.1), path="/v1/"),
        HttpReset(after_bytes=3),
        HttpStatus(share=Ratio(0.1), path="/v1/"),
        HttpBody(share=Ratio(0.1), path="/v1/"),
        HttpBody(body="html"),
        HttpBody(body="broken_json"),
        HttpDelay(delay=Duration(0.2), share=Ratio(0.1)),
        MetricsFreeze(),
        MetricsGap(),
        MetricsGap(page="empty"),
        StreamCut(share=Ratio(0.1)),
        StreamCut(after_events=0, ending="reset"),
        StreamCut(ending="clean"),
        StreamCut(ending="error"),
        StreamStall(share=Ratio(0.1)),
        StreamDropDone(share=Ratio(0.1)),
        StreamDuplicate(share=Ratio(0.1)),
        StreamDuplicate(after_events=0),
        StreamErrorFrame(share=Ratio(0.1)),
        StreamGarble(share=Ratio(0.1)),
        StreamSlowFirst(delay=Duration(0.2), share=Ratio(0.1)),
        StreamTruncateToolCall(share=Ratio(0.1)),
    ],
    ids=repr,
)
def test_a_fault_on_requests_keeps_its_contract_on_the_real_machine(fault: Fault, admin: str, engine: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            target = await edge_to(host, admin, engine, re.sub(r"\W+", "-", repr(fault)))
            await check_fault(fault, (target,), host, within_s=10.0)

    asyncio.run(main())


def test_a_partition_keeps_its_contract_and_leaves_other_callers_alone(admin: str, engine: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            first, second = [await edge_to(host, admin, engine, name) for name in ("tools", "agent->tools")]
            edges = tuple(
                Edge(caller, "tools", "tool", edge.via or "", edge.name, engine)
                for caller, edge in (("gateway", first), ("agent", second))
            )
            target = dataclasses.replace(first, edges=edges)
            fault = NetPartition(from_="agent")
            await check_negative_control(fault, (target,), host, within_s=0.1)
            await check_fault(fault, (target,), host, within_s=10.0)

    asyncio.run(main())


@pytest.mark.parametrize("fault", EDGES, ids=repr)
def test_a_fault_on_an_edge_keeps_its_contract_on_the_real_machine(fault: Fault, admin: str, engine: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            target = await edge_to(host, admin, engine, re.sub(r"\W+", "-", repr(fault)))
            await check_fault(fault, (target,), host, within_s=10.0)

    asyncio.run(main())
