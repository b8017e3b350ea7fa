"""Which requests a toxic takes by what they ask for: their trace, and the model in their body."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.proxy.toxics.stub import End
from tests.proxy.rig import toxic
from tests.proxy.traffic.duplex import EVENTS, PLAIN, Duplex, pieces, stream

TRACE = "0af7651916cd43dd8448eb211c80319c"
STREAM = stream(*EVENTS)


def request(body: bytes, *headers: bytes) -> bytes:
    """A request with this body."""
    lines = [b"POST /v1/chat/completions HTTP/1.1", b"Host: e", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def asking(model: str) -> bytes:
    """A request for a model."""
    return request(json.dumps({"messages": [], "model": model}).encode())


@pytest.mark.parametrize(
    ("header", "matched"),
    [
        (b"traceparent: 00-" + TRACE.encode() + b"-b7ad6b7169203331-01", True),
        (b"X-Trace-Id: " + TRACE.encode(), True),
        (b"traceparent: 00-11111111111111111111111111111111-b7ad6b7169203331-01", False),
        (b"traceparent: " + TRACE.encode(), False),
        (b"x-other: " + TRACE.encode(), False),
    ],
)
def test_a_match_picks_requests_by_trace(header: bytes, matched: bool) -> None:
    status = toxic("http_status", match_trace=TRACE)
    duplex = Duplex(status)
    duplex.ask(request(b"{}", header))
    assert matched == status.hits.matched
    assert matched is (duplex.sent() == b"")


@given(st.lists(st.integers(0, 500), max_size=10))
@settings(max_examples=25)
def test_a_request_is_held_until_its_body_says_which_model_it_wants(cuts: list[int]) -> None:
    status = toxic("http_status", match_model="tiny", status=429)
    duplex = Duplex(status)
    for model in ("large", "tiny", "tiny-2"):
        for piece in pieces(asking(model), cuts):
            duplex.ask(piece)
        if model != "tiny":
            duplex.answer(PLAIN)
    assert asking("large") + asking("tiny-2") == duplex.sent()
    assert [200, 429, 200] == [int(each[:3]) for each in duplex.seen().split(b"HTTP/1.1 ")[1:]]
    assert (1, 1) == (status.hits.matched, status.hits.requests)


def test_what_only_harms_answers_lets_a_request_pass_while_it_reads_it() -> None:
    cut = toxic("sse_drop_done", match_model="tiny")
    duplex = Duplex(cut)
    first, last = asking("tiny")[:-20], asking("tiny")[-20:]
    duplex.ask(first)
    assert first == duplex.sent()
    duplex.ask(last)
    duplex.answer(STREAM)
    assert b"[DONE]" not in duplex.seen()
    duplex.ask(asking("large"))
    duplex.answer(STREAM)
    assert duplex.seen().endswith(STREAM)
    assert (1, 1) == (cut.hits.matched, cut.hits.requests)


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"model": 3}', b'"tiny"', b"\xff\xfe"])
def test_a_body_without_the_model_passes(body: bytes) -> None:
    status = toxic("http_status", match_model="tiny")
    duplex = Duplex(status)
    duplex.ask(request(body))
    assert request(body) == duplex.sent()
    assert 0 == status.hits.matched


def test_a_body_that_is_too_long_to_be_read_passes() -> None:
    long = request(json.dumps({"model": "tiny", "prompt": "x" * (1 << 20)}).encode())
    status = toxic("http_status", match_model="tiny")
    duplex = Duplex(status)
    for piece in pieces(long, list(range(0, len(long), 32768))):
        duplex.ask(piece)
    assert long == duplex.sent()
    assert 0 == status.hits.matched


def test_a_client_that_waits_for_leave_to_send_is_not_held() -> None:
    ask = request(json.dumps({"model": "tiny"}).encode(), b"Expect: 100-continue")
    duplex = Duplex(toxic("http_status", match_model="tiny"))
    duplex.ask(ask)
    assert ask == duplex.sent()


def test_a_request_that_is_held_goes_on_when_the_toxic_is_removed_or_the_client_ends() -> None:
    status = toxic("http_status", match_model="tiny")
    for leave in (lambda duplex: duplex.remove(status), lambda duplex: duplex.ask(End.FIN)):
        duplex = Duplex(status)
        duplex.ask(asking("tiny")[:-5])
        assert b"" == duplex.sent()
        leave(duplex)
        assert asking("tiny")[:-5] == duplex.sent()


def test_the_share_is_one_of_the_requests_for_the_model() -> None:
    status = toxic("http_status", toxicity=0.3, match_model="tiny")
    duplex, answered = Duplex(status), 0
    for number in range(600):
        before = len(duplex.down)
        duplex.ask(asking("tiny" if number % 2 else "large"))
        if len(duplex.down) == before:
            duplex.answer(PLAIN)
        else:
            answered += 1
    assert 300 == status.hits.matched
    assert abs(answered - 90) < 3 * (300 * 0.3 * 0.7) ** 0.5
