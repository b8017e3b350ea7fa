"""The client against servers that misbehave: it always comes back in time and says what may have happened."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from target_stack.tools.client import open_tools
from target_stack.tools.outcomes import MaybeDone, NotStarted, ToolRefused
from target_stack.tools.rules import ToolRules

pytestmark = pytest.mark.system


def against(answer, use):
    """Run `use(client, seen)` against a server that answers every request with these bytes (None: nothing at all)."""
    seen, writers = [], []

    async def serve(reader, writer):
        writers.append(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        seen.append((head, json.loads(await reader.readexactly(length))))
        if answer is None:
            return
        writer.write(answer)
        writer.close()

    async def run():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with open_tools(f"http://127.0.0.1:{port}", "token", ToolRules(results="trusted")) as tools:
            try:
                return await use(tools, seen)
            finally:
                server.close()
                for writer in writers:
                    writer.transport.abort()

    return asyncio.run(run())


def reply(body, status=200):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text


def result(**fields):
    return reply({"jsonrpc": "2.0", "id": 1, "result": fields})


def failure(answer, within_s=2.0):
    async def use(tools, seen):
        with pytest.raises((NotStarted, MaybeDone, ToolRefused)) as failed:
            await tools.call("t", {}, within_s=within_s)
        return type(failed.value), failed.value.reason

    return against(answer, use)


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        (b"", MaybeDone, "lost"),
        (result(structuredContent={})[:-9], MaybeDone, "lost"),
        (reply({}, 503), MaybeDone, "status_503"),
        (reply({}, 404), NotStarted, "status_404"),
        (reply({}, 429), NotStarted, "status_429"),
        (reply(b"<html>"), MaybeDone, "malformed_reply"),
        (reply([]), MaybeDone, "malformed_reply"),
        (reply({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "x"}}), MaybeDone, "malformed_reply"),
        (result(content=[]), MaybeDone, "malformed_reply"),
        (result(content=[{"type": "text", "text": "out of paper"}], isError=True), MaybeDone, "tool_error"),
        (result(structuredContent={"error": {"code": "conflict"}}, isError=True), ToolRefused, "conflict"),
    ],
)
def test_every_way_to_fail_says_whether_the_call_may_have_happened(answer, kind, reason):
    assert failure(answer) == (kind, reason)


def test_a_silent_server_costs_no_more_than_the_time_given():
    started = time.monotonic()
    assert failure(None, within_s=0.2) == (MaybeDone, "timeout")
    assert time.monotonic() - started < 5


def test_where_nobody_listens_nothing_was_started():
    async def use():
        async with open_tools("http://127.0.0.1:1", "token") as tools:
            with pytest.raises(NotStarted) as failed:
                await tools.call("t", {}, within_s=1.0)
        return failed.value.reason

    assert asyncio.run(use()) == "unreachable"


def test_a_call_carries_identity_deadline_trace_and_key():
    async def use(tools, seen):
        traceparent = f"00-{'a' * 32}-{'b' * 16}-01"
        done = await tools.call("t", {"x": 1}, within_s=2.0, key="k", traceparent=traceparent)
        return done, seen

    done, [(head, body)] = against(result(structuredContent={"y": 2}, _meta={"replayed": True}), use)
    assert (done.value, done.replayed) == ({"y": 2}, True)
    for line in ("Authorization: Bearer token", "X-Deadline-Ms: 2000", "Traceparent: 00-aa", "Mcp-Name: t"):
        assert line.lower() in head.lower()
    assert (body["params"]["name"], body["params"]["arguments"]) == ("t", {"x": 1})
    assert body["params"]["_meta"]["idempotency-key"] == "k"
