"""What one request leaves behind: a line in the log, numbers in four layers, one trace over every hop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "tracestate": "vendor=7"}
USAGE = {"prompt_tokens": 21, "completion_tokens": 2, "total_tokens": 23}


def counted(sse: Any) -> tuple[bytes, ...]:
    """An engine's answer with its tokens counted in a last frame, as it is asked to send it."""
    last = sse.data({"id": "chatcmpl-1", "created": 1, "model": "fake", "choices": [], "usage": USAGE})
    return (sse.frame(""), sse.frame("Hello"), sse.frame(" there", "stop"), last, sse.DONE)


class Log:
    """The lines of a gateway whose log is closed at the end of the block."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def requests(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["name"] == "request"]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "events.jsonl")


async def test_a_request_leaves_one_line_with_all_its_metadata_and_no_text(serve: Any, sse: Any, log: Log) -> None:
    async with serve(gateway={"events_file": str(log.path)}) as stack:
        stack.a.script = stack.b.script = counted(sse)
        reply = await stack.chat(route="rag", headers={**CALLER, "x-priority": "batch"})
    (line,) = log.requests()
    times = {key: line.pop(key) for key in ("mono", "wall", "queue_s", "ttft_s", "duration_s")}
    assert line == {
        "seq": 1,
        "name": "request",
        "trace_id": TRACE,
        "route": "rag",
        "priority": "batch",
        "outcome": "ok",
        "status": 200,
        "served_by": reply.headers["x-served-by"],
        "release": "first",
        "degraded": [],
        "cache": None,
        "attempts": 1,
        "prompt_tokens": 21,
        "output_tokens": 2,
        "finish_reasons": ["stop"],
    }
    assert 0 <= times["queue_s"] <= times["ttft_s"] <= times["duration_s"]
    assert "Hello" not in log.path.read_text()
    assert "Hi?" not in log.path.read_text()


async def test_requests_that_came_to_nothing_are_logged_too(serve: Any, sse: Any, log: Log) -> None:
    async with serve(gateway={"events_file": str(log.path)}) as stack:
        await stack.post("/v1/chat/completions", data="{")
        stack.a.script = stack.b.script = (sse.frame("Hello"), 0.01, sse.ENGINE_DIED, sse.DONE)
        await stack.chat()
        for part in (stack.a, stack.b, stack.small):
            await part.stop()
        await stack.chat()
        stack.gateway.drain.closed = True
        await stack.chat()
    lines = [(line["outcome"], line["status"], line["degraded"], line["attempts"]) for line in log.requests()]
    assert lines == [
        ("rejected", 400, [], 0),
        ("broken", 200, [], 1),
        ("degraded", 200, ["canned"], 3),
        ("shed", 503, [], 0),
    ]


async def test_events_stand_in_the_log_between_the_requests(serve: Any, log: Log) -> None:
    async with serve(gateway={"events_file": str(log.path)}) as stack:
        await stack.store.stop()
        for _ in range(4):
            await stack.chat(route="rag")
    (opened,) = [line for line in log.lines if line["name"] == "breaker_opened"]
    assert opened["dependency"] == "vector-store"
    assert [line["seq"] for line in log.lines] == list(range(1, len(log.lines) + 1))


@pytest.mark.parametrize(("share", "times"), [(0.0, None), (1.0, 2)])
async def test_every_tokens_time_is_logged_for_the_share_of_detailed_requests(
    serve: Any, log: Log, share: float, times: int | None
) -> None:
    async with serve(gateway={"events_file": str(log.path)}, log={"token_detail_share": share}) as stack:
        await stack.chat()
    (line,) = log.requests()
    assert (len(line["token_times_s"]) if times else line.get("token_times_s")) == times


@pytest.mark.parametrize("asked", [True, False])
async def test_the_frame_that_counts_tokens_reaches_only_those_who_asked(serve: Any, sse: Any, asked: bool) -> None:
    async with serve() as stack:
        stack.a.script = stack.b.script = counted(sse)
        reply = await stack.chat(**({"stream_options": {"include_usage": True}} if asked else {}))
        body = (stack.a.asked or stack.b.asked)[0]
        assert [frame["usage"] for frame in reply.frames[:-1] if frame.get("usage")] == [USAGE] * asked
        assert body["stream_options"] == {"include_usage": True}
        assert (await stack.chat(stream=False)).json["usage"] == USAGE


async def test_the_callers_trace_reaches_every_hop(serve: Any) -> None:
    async with serve() as stack:
        await stack.chat(route="rag", headers=CALLER)
        await stack.post("/v1/tools/order_status", json={"order": "B-1001"}, headers=CALLER)
        engine = (stack.a.headers or stack.b.headers)[0]
        hops = [engine, stack.embedder.calls[0][2], stack.tools.calls[0][2]]
        assert {headers["traceparent"][:35] for headers in hops} == {f"00-{TRACE}"}
        assert {headers["tracestate"] for headers in hops} == {"vendor=7"}
        assert f"/*traceparent='00-{TRACE}-" in stack.store.queries[-1]


async def test_the_page_of_metrics_has_four_layers_and_what_users_read_is_counted(serve: Any, sse: Any) -> None:
    async with serve() as stack:
        stack.a.script = stack.b.script = counted(sse)
        name = (await stack.chat()).headers["x-served-by"]
        stack.a.script = stack.b.script = (sse.frame("", "length"), sse.DONE)
        await stack.chat()
        await stack.store.stop()
        await stack.chat(route="rag")
        page = (await stack.get("/metrics")).text
    layers = [line for line in page.splitlines() if line.startswith("# layer")]
    assert layers == [f"# layer: {name}" for name in ("resources", "inference", "request path", "content quality")]
    for line in (
        f'gateway_replica_ttft_seconds_count{{replica="{name}"}} 1',
        f'gateway_itl_seconds_count{{replica="{name}"}} 1',
        f'gateway_tokens_total{{replica="{name}",kind="prompt"}} 21',
        "gateway_queue_seconds_count 3",
        'gateway_degraded_total{reason="no_retrieval"} 1',
        'gateway_finish_reasons_total{reason="length"} 2',
        'gateway_answer_tokens_bucket{le="2"} 3',
        "gateway_empty_answers_total 2",
    ):
        assert line in page.splitlines(), line
    assert "gateway_resident_bytes " in page
    assert "\ngateway_recall_ratio " not in page  # nobody has looked yet
