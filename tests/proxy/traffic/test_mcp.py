"""Toxics on MCP: which calls they take, and what becomes of the answers."""

from __future__ import annotations

import json

import pytest

from chaos.proxy.toxic import Toxic
from tests.proxy.rig import toxic
from tests.proxy.traffic.duplex import STREAM_HEAD, Duplex, chunked

CALLED = {"name": "refund_order", "arguments": {"order": "B-1001"}}
DONE = {"refund": "R-1", "order": "B-1001"}


def asked(method: str = "tools/call", number: object = 7, *headers: bytes, path: bytes = b"/mcp", **params) -> bytes:
    """A JSON-RPC request."""
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
    lines = [b"POST %b HTTP/1.1" % path, b"Host: t", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def answered(result: object, number: object = 7) -> bytes:
    """The JSON-RPC answer with a result."""
    body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def structured(fields: object) -> dict[str, object]:
    """A tool's result."""
    return {"content": [{"type": "text", "text": json.dumps(fields)}], "structuredContent": fields}


def body_of(duplex: Duplex) -> dict[str, object]:
    """The JSON that the client got, whose length its head tells."""
    head, _, body = duplex.seen().partition(b"\r\n\r\n")
    assert len(body) == int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return json.loads(body)


def counts(each: Toxic) -> tuple[int, int]:
    return each.hits.matched, each.hits.requests


def test_a_match_on_the_tool_picks_calls_of_that_tool_alone() -> None:
    status = toxic("http_status", match_tool="refund_order")
    duplex = Duplex(status)
    for passing in (asked(name="order_status"), asked("tools/list"), asked("prompts/get", name="refund_order")):
        duplex.ask(passing)
        assert duplex.sent().endswith(passing)
        duplex.answer(answered({}))
    duplex.ask(asked(**CALLED))
    assert (1, 1) == counts(status)


def test_what_only_harms_answers_knows_the_tool_too() -> None:
    reset = toxic("http_reset_mid_body", match_tool="refund_order")
    duplex = Duplex(reset)
    duplex.ask(asked(name="order_status"))
    duplex.answer(answered(structured(DONE)))
    assert [] == duplex.endings()
    duplex.ask(asked(**CALLED))
    assert duplex.sent().endswith(asked(**CALLED)), "the tool does its work"
    duplex.answer(answered(structured(DONE)))
    assert 1 == len(duplex.endings())


@pytest.mark.parametrize("number", [7, "seven", 0])
def test_an_error_answers_the_call_by_its_id_and_the_tool_hears_nothing(number: object) -> None:
    error = toxic("mcp_error", message="out of stock")
    duplex = Duplex(error)
    duplex.ask(asked("tools/call", number, **CALLED))
    assert b"" == duplex.sent()
    result = {"content": [{"type": "text", "text": "out of stock"}], "isError": True}
    assert {"jsonrpc": "2.0", "id": number, "result": result} == body_of(duplex)
    assert (1, 1) == counts(error)


def test_an_error_may_be_one_of_the_protocol() -> None:
    duplex = Duplex(toxic("mcp_error", form="protocol"))
    duplex.ask(asked(**CALLED))
    assert {"code": -32603, "message": "the tool failed"} == body_of(duplex)["error"]


@pytest.mark.parametrize("kind", ["mcp_error", "mcp_wrong_schema"])
def test_handshakes_listings_and_health_checks_pass(kind: str) -> None:
    harm = toxic(kind)
    duplex = Duplex(harm)
    for passing in (asked("initialize"), asked("tools/list"), b"GET /ping HTTP/1.1\r\nHost: t\r\n\r\n"):
        duplex.ask(passing)
        assert duplex.sent().endswith(passing)
        duplex.answer(answered({"tools": []}))
        assert duplex.seen().endswith(answered({"tools": []}))
    assert (0, 0) == counts(harm)


@pytest.mark.parametrize("kind", ["mcp_error", "mcp_wrong_schema", "mcp_lose_session"])
def test_an_observer_that_names_the_toxic_is_hit_whatever_it_asks(kind: str) -> None:
    harm = toxic(kind, toxicity=0.0, name="mine", match_tool="other")
    duplex = Duplex(harm)
    duplex.ask(asked("tools/list", path=b"/mcp?brownout-observer=mine"))
    if kind == "mcp_wrong_schema":
        duplex.answer(answered({"tools": [1]}))
        assert {} == body_of(duplex)["result"]
    assert (0, 1) == counts(harm)


@pytest.mark.parametrize(
    ("breach", "fields"),
    [
        ("missing", {}),
        ("null", {"refund": None, "order": None}),
        ("renamed", {"refund_v2": "R-1", "order_v2": "B-1001"}),
    ],
)
def test_a_result_gets_another_shape_in_its_fields_and_in_its_text(breach: str, fields: object) -> None:
    harm = toxic("mcp_wrong_schema", breach=breach)
    duplex = Duplex(harm)
    duplex.ask(asked(**CALLED))
    assert asked(**CALLED) == duplex.sent(), "the tool does its work"
    duplex.answer(answered(structured(DONE)))
    assert {"jsonrpc": "2.0", "id": 7, "result": structured(fields)} == body_of(duplex)
    assert (1, 1) == counts(harm)


def test_a_result_may_lose_its_structure() -> None:
    duplex = Duplex(toxic("mcp_wrong_schema", breach="unstructured"))
    duplex.ask(asked(**CALLED))
    duplex.answer(answered(structured(DONE)))
    assert {"content": structured(DONE)["content"]} == body_of(duplex)["result"]


def test_an_answer_that_comes_as_events_is_changed_behind_what_else_is_told() -> None:
    note = b'data: {"jsonrpc": "2.0", "method": "notifications/progress"}\n\n'
    said = b"event: message\ndata: " + json.dumps({"id": 7, "result": structured(DONE)}).encode() + b"\n\n"
    duplex = Duplex(toxic("mcp_wrong_schema"))
    duplex.ask(asked(**CALLED))
    duplex.answer(STREAM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(note, said))
    head, _, body = duplex.seen().partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert note + b'event: message\ndata: {"id": 7, "result": ' in body
    assert b"R-1" not in body


@pytest.mark.parametrize("answer", [b"", b"[1]", b'{"error": {"code": 1}}', b"{", b'{"result": 3}'])
def test_what_is_no_result_is_not_harmed(answer: bytes) -> None:
    harm = toxic("mcp_wrong_schema")
    duplex = Duplex(harm)
    duplex.ask(asked(**CALLED))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
    duplex.answer(head + answer)
    assert head + answer == duplex.seen()
    assert (1, 0) == counts(harm)


def test_an_answer_that_is_held_when_the_toxic_goes_passes_as_it_is() -> None:
    harm = toxic("mcp_wrong_schema")
    duplex, whole = Duplex(harm), answered(structured(DONE))
    duplex.ask(asked(**CALLED))
    duplex.answer(whole[:-9])
    duplex.remove(harm)
    duplex.answer(whole[-9:])
    assert {"jsonrpc": "2.0", "id": 7, "result": structured(DONE)} == body_of(duplex)


def test_only_requests_that_belong_to_a_session_are_told_that_it_is_lost() -> None:
    lost = toxic("mcp_lose_session")
    duplex = Duplex(lost)
    duplex.ask(asked("initialize"))
    duplex.answer(answered({}))
    duplex.ask(asked(**CALLED))
    duplex.answer(answered({}))
    assert (0, 0) == counts(lost)
    duplex.ask(asked("tools/call", 8, b"Mcp-Session-Id: 1f", **CALLED))
    assert b"HTTP/1.1 404 Not Found" in duplex.seen()
    assert b'"message": "Session not found"' in duplex.seen()
    assert (1, 1) == counts(lost)


@pytest.mark.parametrize("kind", ["mcp_error", "mcp_wrong_schema"])
def test_settings_that_name_no_harm_are_refused(kind: str) -> None:
    setting = {"mcp_error": "form", "mcp_wrong_schema": "breach"}[kind]
    assert "is none of" in toxic(kind, **{setting: "other"}).attributes.problem()
