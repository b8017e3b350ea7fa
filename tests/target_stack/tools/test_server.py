"""The tools as a process: against the official SDK's client, and through deaths and freezes."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time

import pytest
from killing import TICKET, killed_while_used, wrong_after
from shop import ROOT

from target_stack.tools.client import open_tools
from target_stack.tools.outcomes import MaybeDone, NotStarted
from target_stack.tools.rules import ToolRules

pytestmark = pytest.mark.system


async def with_sdk(server, mode):
    """List and call with the official SDK's client, in one era of the protocol."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    http = create_mcp_http_client(headers={"authorization": "Bearer support-token"})
    async with Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        key = {"idempotency-key": f"k-{mode}", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        done = await client.call_tool("open_ticket", TICKET, meta=key)
        refused = await client.call_tool("refund_order", {"order": "B-1001", "amount_cents": 1}, meta=key)
    await http.aclose()
    return listed, done, refused


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_can_use_them_in_both_eras_of_the_protocol(server, mode):
    server.start()
    listed, done, refused = asyncio.run(with_sdk(server, mode))
    assert listed == ["order_status", "search_docs", "open_ticket"]
    assert (done.is_error, done.structured_content["order"]) == (False, "B-1003")
    assert (refused.is_error, refused.structured_content["error"]["code"]) == (True, "permission_denied")
    (effect,) = server.get("/ledger")["entries"]
    assert (effect["agent"], effect["key"], effect["trace_id"]) == ("support", f"k-{mode}", "a" * 32)
    assert [line["outcome"] for line in server.get("/audit")["entries"]] == ["ok", "permission_denied"]


def test_operators_can_read_what_there_is_and_what_happened(server):
    server.start()
    assert [tool["name"] for tool in server.get("/tools")["tools"]][-1] == "refund_order"
    assert all(tool["inputSchema"] and tool["outputSchema"] for tool in server.get("/tools")["tools"])

    async def use():
        async with open_tools(server.url, "support-token") as tools:
            for key in ("k1", "k1", "k2"):
                await tools.call("open_ticket", TICKET, within_s=5.0, key=key)

    asyncio.run(use())
    assert [entry["key"] for entry in server.get("/ledger?after=0")["entries"]] == ["k1", "k2"]
    assert server.get("/audit?after=1&limit=1")["entries"][0]["outcome"] == "replayed"
    assert server.get("/audit?limit=0") == {"entries": [], "last": 3}
    assert 'tools_requests_total{route="open_ticket",status="ok"} 2' in server.get("/metrics")
    assert server.end(signal.SIGTERM) == 0


def test_however_often_the_server_is_killed_every_intent_has_one_effect_and_its_first_result(server):
    server.start()
    results = asyncio.run(killed_while_used(server, kills=3, callers=4, rng=random.Random(7)))
    assert len(results) > 4
    assert wrong_after(server, results) is None


def test_a_frozen_server_costs_the_time_given_and_the_call_can_be_asked_for_again(server):
    server.start()

    async def use():
        async with open_tools(server.url, "support-token") as tools:
            await tools.call("open_ticket", TICKET, within_s=5.0, key="k1")
            server.send(signal.SIGSTOP)
            started = time.monotonic()
            with pytest.raises(MaybeDone) as lost:
                await tools.call("open_ticket", TICKET, within_s=0.3, key="k2")
            waited_s = time.monotonic() - started
            server.send(signal.SIGCONT)
            await tools.call("open_ticket", TICKET, within_s=5.0, key="k2")
            return lost.value.reason, waited_s

    reason, waited_s = asyncio.run(use())
    assert reason == "timeout"
    assert waited_s < 3
    assert [entry["key"] for entry in server.get("/ledger")["entries"]] == ["k1", "k2"]


def test_only_the_process_of_the_tools_pays_for_the_sdk():
    code = (
        "import sys, target_stack.nursery as n; n.preload();"
        "print([m for m in ('mcp', 'mcp_types', 'pydantic', 'uvicorn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"enforcement": "none"}, "enforcement 'none' is none of enforce, report"),
        ({"audit": "never"}, "audit 'never' is none of in_transaction, deferred"),
        ({"agents": {"a": {"tols": {}}}}, "unknown key 'tols'"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused_at_start(wrong, message):
    from target_stack.tools.server import open_service

    with pytest.raises(ValueError, match=message):
        open_service({"listen": "127.0.0.1:0", **wrong})


def use_twice(server, rules):
    """A call, a restart of the tools, and another call."""

    async def use():
        async with open_tools(server.url, "support-token", rules) as tools:
            await tools.call("open_ticket", TICKET, within_s=5.0, key="k1")
            server.end(signal.SIGKILL)
            with pytest.raises(MaybeDone):  # on the connection that it had
                await tools.call("open_ticket", TICKET, within_s=5.0, key="k1")
            server.start()
            again = await tools.call("open_ticket", TICKET, within_s=5.0, key="k1")
            return again.replayed, (await tools.call("open_ticket", TICKET, within_s=5.0, key="k2")).replayed

    return asyncio.run(use())


@pytest.mark.parametrize("session", ["none", "renewed"])
def test_a_client_goes_on_after_a_restart_with_no_session_or_with_a_new_one(server, session):
    server.start()
    assert use_twice(server, ToolRules(session=session)) == (True, False)


def test_a_client_that_keeps_its_session_has_lost_the_tools_with_it(server):
    server.start()
    with pytest.raises(NotStarted) as lost:
        use_twice(server, ToolRules(session="kept"))
    assert lost.value.reason == "status_404"
