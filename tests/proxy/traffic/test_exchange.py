"""Toxics on single requests, in virtual time: the HTTP around the harm stays valid, unless breaking it is the harm."""

from __future__ import annotations

import http.client
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics import PER_REQUEST
from chaos.proxy.toxics.stub import End, Item
from tests.proxy.rig import toxic
from tests.proxy.traffic.duplex import EVENTS, PLAIN, REQUEST, STREAM_HEAD, Duplex, pieces, stream

STREAM = stream(*EVENTS)
CUTS = st.lists(st.integers(0, 500), max_size=25)
EVENT_KINDS = [kind.kind for kind in PER_REQUEST if kind.kind.startswith("sse_")]
few = settings(max_examples=25)
LATE: dict[str, dict[str, int | str]] = {"sse_slow_first": {"delay": 0}, "sse_stall": {"duration": 1}}


class Wire(io.BytesIO):
    """What http.client takes for a socket."""

    def makefile(self, *_: object) -> Wire:
        return self


def parsed(wire: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the first answer, as the standard library reads them. Raises HTTPException."""
    reply = http.client.HTTPResponse(Wire(wire), method="POST")  # type: ignore[arg-type]  # it only needs makefile
    reply.begin()
    headers = {name.lower(): value for name, value in reply.getheaders()}
    return reply.status, headers, reply.read()


def through(*toxics: Toxic, answer: bytes = STREAM, cuts: tuple[int, ...] = (), ask: bytes = REQUEST) -> Duplex:
    """One request and its answer, an hour later."""
    duplex = Duplex(*toxics)
    duplex.ask(ask)
    for piece in pieces(answer, list(cuts)):
        if duplex.chains["downstream"].room:
            duplex.answer(piece)
        else:
            duplex.chains["downstream"].feed(duplex.now, piece)
        duplex.run_until(duplex.now + 2)
    duplex.run_until(duplex.now + 3600)
    return duplex


def body(duplex: Duplex) -> bytes:
    return parsed(duplex.seen())[2]


@pytest.mark.parametrize("kind", [kind.kind for kind in PER_REQUEST])
@few
@given(cuts=CUTS)
def test_a_request_that_is_not_chosen_passes_byte_for_byte(kind: str, cuts: list[int]) -> None:
    duplex = through(toxic(kind, toxicity=0), cuts=tuple(cuts))
    assert (duplex.sent(), duplex.seen(), duplex.endings()) == (REQUEST, STREAM, [])


@pytest.mark.parametrize("kind", EVENT_KINDS)
@few
@given(cuts=CUTS)
def test_the_harm_to_a_stream_does_not_depend_on_how_its_bytes_arrive(kind: str, cuts: list[int]) -> None:
    attributes = LATE.get(kind, {})
    cut, whole = through(toxic(kind, **attributes), cuts=tuple(cuts)), through(toxic(kind, **attributes))
    assert (cut.seen(), cut.endings()) == (whole.seen(), whole.endings())


@pytest.mark.parametrize("kind", [kind for kind in EVENT_KINDS if kind != "sse_cut"])
def test_a_stream_that_is_harmed_inside_is_valid_http_and_its_connection_serves_again(kind: str) -> None:
    duplex = through(toxic(kind, **LATE.get(kind, {})))
    first = duplex.seen()
    assert first.endswith(b"0\r\n\r\n")
    assert parsed(first)[0] == 200
    duplex.ask()
    duplex.answer(PLAIN)
    assert duplex.seen() == first + PLAIN


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        ("sse_cut", {"after_events": 2, "ending": "clean"}, EVENTS[:2]),
        ("sse_drop_done", {}, EVENTS[:3]),
        ("sse_duplicate", {"after_events": 1}, [EVENTS[0], EVENTS[1], EVENTS[1], EVENTS[2], EVENTS[3]]),
        ("sse_garble", {"after_events": 2}, [*EVENTS[:2], b'data: {"n"\n\n', EVENTS[3]]),
        ("sse_garble", {"after_events": 3}, EVENTS),
        ("sse_cut", {"after_events": 9, "ending": "clean"}, EVENTS),
    ],
)
@pytest.mark.parametrize("framing", ["chunked", "length", "one chunk"])
def test_what_events_arrive(kind: str, attributes: dict[str, int | str], expected: list[bytes], framing: str) -> None:
    whole = b"".join(EVENTS)
    answers = {
        "chunked": STREAM,
        "length": STREAM_HEAD + b"Content-Length: %d\r\n\r\n" % len(whole) + whole,
        "one chunk": stream(whole),
    }
    assert b"".join(expected) == body(through(toxic(kind, **attributes), answer=answers[framing]))


def call_events(*pieces: tuple[int, str]) -> list[bytes]:
    """Tool call deltas: the number of the call, and a piece of its arguments."""
    calls = ({"index": number, "function": {"arguments": piece}} for number, piece in pieces)
    chunks = ({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls)
    return [f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode() for chunk in chunks]


def test_the_arguments_of_every_tool_call_stop_after_so_many_characters_and_nothing_else_changes() -> None:
    said = call_events((0, '{"a": 1'), (1, '{"b"'), (0, ", "), (0, '"c": 2}'), (1, ": 3}"))
    kept = call_events((0, '{"a": 1'), (1, '{"b"'), (0, ", "), (0, ""), (1, ": 3}"))
    truncate = toxic("sse_truncate_tool_call", keep_chars=9)
    assert b"".join([*kept, *EVENTS]) == body(through(truncate, answer=stream(*said, *EVENTS)))
    assert (1, 1) == (truncate.hits.requests, truncate.hits.events)


@pytest.mark.parametrize(
    "odd", ['{"choices":3,"x":"tool_calls"}', '{"choices":[{"delta":{"tool_calls":[7]}}]}', "tool_calls"]
)
def test_what_only_looks_like_a_tool_call_passes(odd: str) -> None:
    answer = stream(f"data: {odd}\n\n".encode(), *EVENTS)
    assert parsed(answer)[2] == body(through(toxic("sse_truncate_tool_call", keep_chars=0), answer=answer))


def test_an_error_frame_ends_the_stream_as_vllm_does_and_the_rest_is_dropped() -> None:
    events = body(through(toxic("sse_error_frame", after_events=1))).split(b"\n\n")
    assert events[0] + b"\n\n" == EVENTS[0]
    assert b'"code": 500' in events[1]
    assert events[2:] == [b"data: [DONE]", b""]


@pytest.mark.parametrize(("ending", "end"), [("close", End.CLOSE), ("reset", End.ABORT)])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_cut_breaks_the_body_off_behind_its_events(ending: str, end: End, after: int) -> None:
    duplex = through(toxic("sse_cut", after_events=after, ending=ending))
    assert duplex.endings() == [end]
    assert duplex.seen().count(b"data:") == after
    with pytest.raises(http.client.IncompleteRead):
        parsed(duplex.seen())


def test_a_stall_is_silence_on_an_open_connection_and_presses_back() -> None:
    stall = toxic("sse_stall", after_events=2)
    duplex = through(stall)
    assert duplex.seen().count(b"data:") == 2
    assert duplex.endings() == []
    duplex.answer(b"more")
    assert not duplex.chains["downstream"].room
    assert stall.hits.requests == 1


def test_a_stall_that_is_removed_loses_nothing() -> None:
    stall = toxic("sse_stall", after_events=2)
    duplex = through(stall)
    duplex.remove(stall)
    assert body(duplex) == b"".join(EVENTS)


def test_a_stream_in_the_middle_of_a_chunk_stays_valid_when_its_toxic_goes() -> None:
    cut = toxic("sse_cut", after_events=3)
    duplex = Duplex(cut)
    duplex.ask()
    whole = stream(b"".join(EVENTS))
    duplex.answer(whole[:-40])
    duplex.remove(cut)
    duplex.answer(whole[-40:])
    duplex.ask()
    duplex.answer(PLAIN)
    assert duplex.seen().endswith(PLAIN)
    assert parsed(duplex.seen())[2] == b"".join(EVENTS)
    assert duplex.endings() == []


@pytest.mark.parametrize("kind", [kind.kind for kind in PER_REQUEST])
@pytest.mark.parametrize("at", [1, 60, 140, len(STREAM) - 1])
def test_no_byte_is_lost_when_a_toxic_goes_while_it_reads(kind: str, at: int) -> None:
    idle = toxic(kind, toxicity=0)
    duplex = Duplex(idle)
    duplex.ask(REQUEST[:at])
    duplex.ask(REQUEST[at:])
    duplex.answer(STREAM[:at])
    duplex.remove(idle)
    duplex.answer(STREAM[at:])
    assert (duplex.sent(), duplex.seen()) == (REQUEST, STREAM)


def test_a_stall_may_end_by_itself() -> None:
    duplex = Duplex(toxic("sse_stall", after_events=1, duration=500))
    duplex.ask()
    duplex.answer(STREAM)
    duplex.run_until(0.4)
    assert duplex.seen().count(b"data:") == 1
    duplex.run_until(0.6)
    assert body(duplex) == b"".join(EVENTS)


def test_only_the_first_event_of_a_slow_first_is_late() -> None:
    duplex = Duplex(toxic("sse_slow_first", delay=700))
    duplex.ask()
    duplex.answer(STREAM)
    assert duplex.seen().startswith(STREAM_HEAD)
    assert b"data:" not in duplex.seen()
    duplex.run_until(1)
    assert {0, 0.7} == {when for when, _ in duplex.down}


def test_http_delay_delays_the_head_and_not_the_next_request() -> None:
    delay = toxic("http_delay", delay=300, match_path="/v1/")
    duplex = Duplex(delay)
    duplex.ask()
    duplex.answer(PLAIN)
    duplex.run_until(1)
    duplex.ask(REQUEST.replace(b"/v1/chat/completions", b"/ping"))
    duplex.answer(PLAIN)
    assert [0.3, 1] == sorted({when for when, _ in duplex.down})
    assert duplex.seen() == PLAIN + PLAIN


def test_a_status_comes_at_once_with_retry_after_and_the_upstream_hears_nothing() -> None:
    duplex = Duplex(toxic("http_status", status=429, retry_after=7))
    duplex.ask()
    status, headers, text = parsed(duplex.seen())
    assert (status, headers["retry-after"], duplex.sent()) == (429, "7", b"")
    assert b'"code": 429' in text
    assert duplex.endings() == []


@few
@given(st.lists(st.booleans(), min_size=1, max_size=6), CUTS)
def test_pipelined_requests_are_answered_in_order_however_they_arrive(chosen: list[bool], cuts: list[int]) -> None:
    asks = [REQUEST if each else REQUEST.replace(b"/v1/chat", b"/other") for each in chosen]
    duplex = Duplex(toxic("http_status", status=503, match_path="/v1/chat"))
    for piece in pieces(b"".join(asks), cuts):
        duplex.ask(piece)
    for _ in range(chosen.count(False)):
        duplex.answer(PLAIN)
    assert duplex.sent() == b"".join(ask for ask, mine in zip(asks, chosen, strict=True) if not mine)
    assert [line[:12] for line in duplex.seen().split(b"HTTP/1.1 ")[1:]] == [
        b"503 Service " if mine else b"200 OK\r\nCont" for mine in chosen
    ]


@pytest.mark.parametrize(
    ("which", "content_type", "text"),
    [
        ("empty", "application/json", b""),
        ("html", "text/html; charset=utf-8", b"Sign in"),
        ("broken_json", "application/json", b'"mess'),
    ],
)
def test_http_body_is_valid_http_with_a_body_that_is_no_answer(which: str, content_type: str, text: bytes) -> None:
    duplex = Duplex(toxic("http_body", body=which))
    duplex.ask()
    status, headers, found = parsed(duplex.seen())
    assert (status, headers["content-type"]) == (200, content_type)
    assert text in found
    assert len(found) == int(headers["content-length"])


@pytest.mark.parametrize(
    "ask",
    [
        REQUEST.replace(b"Host: e", b"Host: e\r\nConnection: close"),
        b"GET / HTTP/1.0\r\n\r\n",
        REQUEST.replace(b"Host: e", b"Host: e\r\nExpect: 100-continue")[:-2],
    ],
)
def test_an_answer_of_ours_ends_the_connection_where_it_cannot_be_used_again(ask: bytes) -> None:
    duplex = Duplex(toxic("http_status"))
    duplex.ask(ask)
    assert parsed(duplex.seen())[1]["connection"] == "close"
    assert duplex.endings() == [End.CLOSE]


def test_head_gets_the_head_of_our_answer_only() -> None:
    duplex = Duplex(toxic("http_status"))
    duplex.ask(b"HEAD / HTTP/1.1\r\nHost: e\r\n\r\n")
    assert duplex.seen().endswith(b"\r\n\r\n")


def test_a_reset_comes_in_the_middle_of_a_body_and_not_behind_a_shorter_one() -> None:
    reset = toxic("http_reset_mid_body", after_bytes=3)
    duplex = through(reset, answer=PLAIN)
    assert (duplex.seen(), duplex.endings(), reset.hits.requests) == (PLAIN[:-1], [End.ABORT], 1)
    spared = toxic("http_reset_mid_body", after_bytes=4)
    duplex = through(spared, answer=PLAIN)
    assert (duplex.seen(), duplex.endings(), spared.hits.requests) == (PLAIN, [], 0)


@pytest.mark.parametrize(
    ("attributes", "matched"),
    [
        ({"match_path": "/v1/"}, True),
        ({"match_path": "/v2/"}, False),
        ({"match_header": "x-tenant"}, True),
        ({"match_header": "X-Tenant: blue"}, True),
        ({"match_header": "x-tenant: red"}, False),
        ({"match_header": "x-trace"}, False),
    ],
)
def test_a_match_picks_requests_by_path_and_header(attributes: dict[str, str], matched: bool) -> None:
    status = toxic("http_status", **attributes)
    duplex = Duplex(status)
    duplex.ask()
    assert (b"" if matched else REQUEST) == duplex.sent()
    assert status.hits.matched == matched


def test_toxicity_is_the_share_of_requests_on_one_connection_within_three_sigma_and_repeatable() -> None:
    def hit(seed: int) -> list[bool]:
        duplex = Duplex(toxic("http_status", toxicity=0.3), seed=seed)
        sent = []
        for _ in range(1000):
            before = len(duplex.down)
            duplex.ask()
            sent.append(len(duplex.down) > before)
            if not sent[-1]:
                duplex.answer(PLAIN)
        return sent

    assert abs(sum(hit(1)) - 300) < 3 * (1000 * 0.3 * 0.7) ** 0.5
    assert hit(1) == hit(1) != hit(2)


def test_an_observer_that_names_the_toxic_is_hit_whatever_share_and_match_say() -> None:
    status = toxic("http_status", toxicity=0, name="mine", match_path="/nowhere")
    duplex = Duplex(status)
    duplex.ask(REQUEST.replace(b"completions HTTP", b"completions?brownout-observer=mine HTTP"))
    assert parsed(duplex.seen())[0] == 503
    duplex.ask(REQUEST.replace(b"completions HTTP", b"completions?brownout-observer=other HTTP"))
    assert b"other" in duplex.sent()
    assert (status.hits.matched, status.hits.requests) == (0, 1)


def test_hits_count_what_was_harmed_and_not_what_was_only_chosen() -> None:
    cut = toxic("sse_duplicate", after_events=1)
    duplex = through(cut)
    duplex.ask()
    duplex.answer(PLAIN)
    assert (cut.hits.connections, cut.hits.matched, cut.hits.requests, cut.hits.events) == (1, 2, 1, 1)


@pytest.mark.parametrize("kind", [kind.kind for kind in PER_REQUEST])
@few
@given(up=st.binary(min_size=1, max_size=100), down=st.binary(max_size=100), cuts=CUTS)
def test_another_protocol_falls_through_untouched(kind: str, up: bytes, down: bytes, cuts: list[int]) -> None:
    up = b"\x00" + up.replace(b"HTTP", b"")
    duplex = Duplex(toxic(kind))
    for piece in pieces(up, cuts):
        duplex.ask(b"\x00" + piece)
    duplex.ask(End.FIN)
    for piece in pieces(down, cuts):
        duplex.answer(piece)
    assert duplex.sent() == b"".join(b"\x00" + piece for piece in pieces(up, cuts))
    assert duplex.seen() == down


def test_an_answer_that_was_under_way_when_the_toxic_came_passes_and_the_next_is_harmed() -> None:
    duplex = Duplex()
    duplex.ask()
    duplex.answer(STREAM[:100])
    duplex.add(toxic("sse_cut", after_events=1))
    duplex.answer(STREAM[100:])
    assert duplex.seen() == STREAM
    duplex.ask()
    duplex.answer(STREAM)
    assert duplex.endings() == [End.CLOSE]


def test_two_toxics_on_one_connection_each_see_what_the_other_leaves() -> None:
    duplicate, status = toxic("sse_duplicate", after_events=0), toxic("http_status", toxicity=0)
    duplex = Duplex(duplicate, status)
    duplex.ask()
    duplex.answer(STREAM)
    assert body(duplex) == EVENTS[0] + b"".join(EVENTS)
    status.toxicity = 1
    duplex.ask()
    assert b"503 Service" in duplex.seen()
    status.toxicity = 0
    duplex.ask()
    duplex.answer(STREAM)
    assert duplicate.hits.requests == 2


@pytest.mark.parametrize("end", [End.FIN, End.CLOSE])
def test_the_end_of_a_stream_passes_with_all_that_came_before(end: Item) -> None:
    duplex = Duplex(toxic("sse_cut", after_events=9))
    duplex.ask(REQUEST[:20])
    duplex.ask(end)
    duplex.answer(STREAM_HEAD[:30])
    duplex.answer(end)
    assert (duplex.sent(), duplex.seen()) == (REQUEST[:20], STREAM_HEAD[:30])
    assert [end] == duplex.endings()
