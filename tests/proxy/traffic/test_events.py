"""A body is cut into events in one way only, however its bytes arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.proxy.traffic.events import Splitter, data_of, framed, is_stream, with_chunks
from chaos.proxy.traffic.messages import Framing, read_head
from tests.proxy.traffic.duplex import EVENTS, pieces

LINES = st.sampled_from([b"data: a", b": warm", b"id: 7", b"data", b"", b"event: x"])
BODIES = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


def split(body: bytes, cuts: list[int]) -> tuple[list[bytes], bytes]:
    splitter = Splitter()
    blocks = [block for piece in pieces(body, cuts) for block in splitter.feed(piece)]
    return blocks, splitter.rest()


@given(BODIES, st.lists(st.integers(0, 200), max_size=20))
def test_the_blocks_of_a_body_do_not_depend_on_how_it_arrives(body: bytes, cuts: list[int]) -> None:
    blocks, rest = split(body, cuts)
    assert b"".join(blocks) + rest == body
    assert (blocks, rest) == split(body, [])


def test_every_event_is_one_block() -> None:
    assert split(b"".join(EVENTS), [3, 20]) == (EVENTS, b"")


@pytest.mark.parametrize(
    ("block", "data"),
    [(b"data: x\n\n", b"x"), (b"data:x\r\n\r\n", b"x"), (b"id: 1\ndata: [DONE]\n\n", b"[DONE]"), (b": warm\n\n", None)],
)
def test_the_data_of_a_block(block: bytes, data: bytes | None) -> None:
    assert data_of(block) == data


@pytest.mark.parametrize(
    ("headers", "stream"),
    [
        (b"content-type: text/event-stream", True),
        (b"Content-Type: Text/Event-Stream; charset=utf-8", True),
        (b"Content-Type: application/json", False),
        (b"Content-Type: text/event-stream\r\nContent-Encoding: gzip", False),
    ],
)
def test_only_plain_event_streams_are_streams(headers: bytes, stream: bool) -> None:
    answer = read_head(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n\r\n", answers=True)
    assert answer
    assert is_stream(answer) is stream


def test_an_answer_of_known_length_can_be_given_in_chunks_instead() -> None:
    answer = read_head(b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 9\r\nX: y\r\n\r\n", answers=True)
    assert answer
    assert with_chunks(answer) == b"HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_nothing_is_not_a_chunk_because_an_empty_one_would_end_the_body() -> None:
    assert framed(b"", Framing.CHUNKED) == b""
    assert framed(b"ab", Framing.CHUNKED) == b"2\r\nab\r\n"
    assert framed(b"ab", Framing.CLOSE) == b"ab"
