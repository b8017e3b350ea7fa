"""The wire of the load driver against real sockets."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import struct
from collections import Counter

import aiohttp
import pytest
from aiohttp import web

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.entropy import SeededEntropy
from chaos.load.driver import drive
from chaos.load.prompts import Prompt
from chaos.load.report import load_finished_fields
from chaos.load.schedule import HttpRequest, plan_load
from chaos.load.stopwatch import Question, Stopwatch
from chaos.load.transport import HttpTransport, describe
from chaos.spec.model import Client, Load
from chaos.units import Duration, Rate

pytestmark = pytest.mark.system

CLOCK = MonotonicClock()
REQUEST = HttpRequest("POST", "/v1/chat/completions", {"content-type": "application/json"}, b"{}")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def frame(content, finish=None):
    return (
        b"data: "
        + json.dumps({"choices": [{"delta": {"content": content}, "finish_reason": finish}]}).encode()
        + b"\n\n"
    )


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


async def attempt(front_door):
    watch = Stopwatch(Question(intended_s=CLOCK.now()), CLOCK.now())
    async with HttpTransport(front_door, CLOCK.now) as transport:
        await asyncio.wait_for(transport.exchange(REQUEST, watch), 5.0)
    return watch.outcome()


async def against(answer, *, reset=False):
    """The outcome of an attempt against a server that reads a request, writes `answer` and hangs up."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        return await attempt(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (HEAD + chunk(frame("a", "stop") + b"data: [DONE]\n\n") + b"0\r\n\r\n", ("good", "")),
        (HEAD + chunk(frame("a", "stop")) + b"0\r\n\r\n", ("indeterminate", "no_done")),
        (HEAD + chunk(frame("a")), ("failed", "cut")),
        (HEAD + chunk(frame("a", "stop")), ("indeterminate", "cut_after_finish")),
        (b"", ("failed", "reset")),
        (b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n", ("shed", "status_503")),
        (b"SSH-2.0-nonsense\r\n\r\n", ("failed", "protocol_error")),
    ],
)
def test_what_a_server_does_has_a_name(answer, expected):
    assert expected == asyncio.run(against(answer))


def test_a_reset_connection_failed():
    assert asyncio.run(against(HEAD + chunk(frame("a")), reset=True))[0] == "failed"


def test_a_refused_connection_failed():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connects are refused
        port = taken.getsockname()[1]
        assert asyncio.run(attempt(f"http://127.0.0.1:{port}")) == ("failed", "connect_refused")


def test_being_out_of_descriptors_is_our_own_trouble():
    key = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, None, None)
    error = aiohttp.ClientConnectorError(key, OSError(errno.EMFILE, "Too many open files"))
    assert describe(error) == ("harness_emfile", True)


async def stack(handler):
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def test_a_load_over_real_sockets_balances_and_is_traced():
    seen = []

    async def handler(request):
        seen.append(request.headers["traceparent"])
        reply = web.StreamResponse(headers={"content-type": "text/event-stream", "x-served-by": "engine-a"})
        await reply.prepare(request)
        for word in ("It", " is", " 45"):
            await reply.write(frame(word))
        await reply.write(frame(" days", "stop") + b"data: [DONE]\n\n")
        return reply

    async def main():
        runner, front_door = await stack(handler)
        loads = [Load(name=n, route="chat", rate=Rate(40), client=Client(timeout=Duration(10))) for n in ("a", "b")]
        prompt = (Prompt("q", question="How long?", expect=("45 days",)),)
        plans = [plan_load(load, prompt, 7, SeededEntropy(7), 0.5) for load in loads]
        rows, now = [], CLOCK.now()
        reports = await drive(plans, front_door, CLOCK, rows.append, asyncio.Event(), start=now + 0.05, origin=now)
        await runner.cleanup()
        return rows, reports

    rows, reports = asyncio.run(main())
    planned = sum(report.planned for report in reports)
    assert planned > 10
    assert {(row.outcome, row.answer_ok, row.served_by, row.final) for row in rows} == {
        ("good", True, "engine-a", True)
    }
    assert Counter(text[3:35] for text in seen) == Counter(row.trace_id for row in rows)
    fields = load_finished_fields(reports)
    assert fields["loads"]["a"] == dict.fromkeys(("planned", "sent", "finished"), reports[0].planned)
    assert 0 <= fields["lateness_s_p50"] <= fields["lateness_s_p99"]


def test_a_stop_cuts_streams_that_hang_and_the_server_sees_them_go():
    gone = []

    async def handler(request):
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        try:
            await reply.write(frame("a"))
            await asyncio.sleep(30)
        finally:
            gone.append(1)
        return reply

    async def main():
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        load = Load(name="a", route="chat", rate=Rate(50), arrivals="constant")
        plan = plan_load(load, (Prompt("q", question="?"),), 7, SeededEntropy(7), 20.0)
        rows, now, stop = [], CLOCK.now(), asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, stop.set)
        front_door = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await drive([plan], front_door, CLOCK, rows.append, stop, start=now, origin=now, drain_s=0.1)
        for _ in range(100):
            if len(gone) == sum(row.attempt for row in rows):
                break
            await asyncio.sleep(0.02)
        await runner.cleanup()
        return rows, len(gone)

    rows, left = asyncio.run(main())
    assert len(rows) == 1000
    assert {row.why for row in rows} == {"stopped", "not_sent"}
    assert left == sum(row.attempt for row in rows)
