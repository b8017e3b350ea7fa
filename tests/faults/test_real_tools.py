"""The contract of the faults on tool calls, with a real proxy process and the real tools over MCP."""

from __future__ import annotations

import asyncio
import contextlib
import json
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
from chaos.faults.tool_error import ToolError
from chaos.faults.tool_lost_reply import ToolLostReply
from chaos.faults.tool_session_drop import ToolSessionDrop
from chaos.faults.tool_slow import ToolSlow
from chaos.faults.tool_wrong_schema import ToolWrongSchema
from chaos.inventory import Target
from chaos.ports import Host
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Duration, Ratio
from tests.loopback import free_port

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
FAULTS: tuple[Fault, ...] = (
    ToolError(share=Ratio(0.1)),
    ToolError(form="protocol", tool="open_ticket"),
    ToolLostReply(share=Ratio(0.1)),
    ToolLostReply(after_bytes=20, tool="open_ticket"),
    ToolSessionDrop(share=Ratio(0.1)),
    ToolSlow(delay=Duration(0.3), share=Ratio(0.1)),
    ToolWrongSchema(share=Ratio(0.1)),
    ToolWrongSchema(breach="null", tool="open_ticket"),
    ToolWrongSchema(breach="renamed"),
)


@contextlib.contextmanager
def running(*command: str, port: int) -> Iterator[str]:
    """A process of ours that listens on a port; its address."""
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            for _ in range(1500):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.02)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    port = free_port()
    with running("-m", "chaos.proxy", "--host", "127.0.0.1", "--port", str(port), port=port) as address:
        yield address


@pytest.fixture(scope="module")
def tools() -> Iterator[str]:
    port = free_port()
    config = json.dumps({"listen": f"127.0.0.1:{port}"})
    with running("-m", "target_stack.serve", "tools", config, port=port) as address:
        yield address


async def edge_to(host: Host, admin: str, tools: str, name: str) -> Target:
    wanted = {"name": name, "listen": "127.0.0.1:0", "upstream": tools}
    made = json.loads((await host.http.call("POST", f"http://{admin}/proxies", wanted)).body)
    return Target(name, "tool", None, (), tools, made["listen"], handles={"proxy": {"admin": admin, "name": name}})


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_a_fault_on_tool_calls_keeps_its_contract_on_the_real_machine(fault: Fault, admin: str, tools: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            target = await edge_to(host, admin, tools, re.sub(r"\W+", "-", repr(fault)))
            await check_negative_control(fault, (target,), host, within_s=0.1)
            await check_fault(fault, (target,), host, within_s=10.0)

    asyncio.run(main())
