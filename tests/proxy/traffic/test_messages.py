"""HTTP/1.1 read off a stream: no byte is lost, however it arrives, and what is not HTTP falls through."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.proxy.traffic.messages import Alien, Data, End, Framing, Head, Part, Reader, read_head
from tests.proxy.traffic.duplex import EVENTS, PLAIN, REQUEST, chunked, pieces, stream

CHUNKED_REQUEST = b"PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"abc", b"de")
TRAILED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: 1\r\nY: 2\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.0 200 OK\r\n\r\nall that comes"
POSTGRES = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"

REQUESTS = st.lists(
    st.sampled_from([REQUEST, CHUNKED_REQUEST, b"GET /ping?x HTTP/1.0\r\n\r\n"]), min_size=1, max_size=4
)
ANSWERS = st.lists(st.sampled_from([PLAIN, stream(*EVENTS), TRAILED, NO_CONTENT, CONTINUE]), min_size=1, max_size=4)
CUTS = st.lists(st.integers(0, 2000), max_size=30)


def read(reader: Reader, wire: bytes, cuts: Iterable[int] = ()) -> list[Part]:
    return [part for piece in pieces(wire, list(cuts)) for part in reader.feed(piece)] + reader.finish()


def story(parts: list[Part]) -> list[object]:
    """Heads, whole bodies and ends: what must not depend on how the bytes arrived."""
    told: list[object] = []
    for part in parts:
        if isinstance(part, Data):
            told.append((told.pop() if told and isinstance(told[-1], bytes) else b"") + part.raw)
        elif isinstance(part, (Head, End, Alien)):
            told.append(part)
    return told


def raw(parts: list[Part]) -> bytes:
    return b"".join(part.raw for part in parts)


@settings(max_examples=60)
@given(st.one_of(REQUESTS.map(lambda r: (r, False)), ANSWERS.map(lambda a: (a, True))), CUTS)
def test_messages_are_the_same_however_their_bytes_arrive(messages: tuple[list[bytes], bool], cuts: list[int]) -> None:
    wire = b"".join(messages[0])
    cut = read(Reader(answers=messages[1]), wire, cuts)
    assert raw(cut) == wire
    assert story(cut) == story(read(Reader(answers=messages[1]), wire))
    assert sum(isinstance(part, End) for part in cut) == len(messages[0])
    assert not any(isinstance(part, Alien) for part in cut)


@settings(max_examples=60)
@given(st.binary(max_size=300), st.booleans(), CUTS)
def test_whatever_comes_leaves_byte_for_byte(wire: bytes, answers: bool, cuts: list[int]) -> None:
    assert raw(read(Reader(answers=answers), wire, cuts)) == wire


@settings(max_examples=60)
@given(st.integers(0, 400), st.binary(min_size=1, max_size=20), st.booleans(), CUTS)
def test_broken_http_leaves_byte_for_byte_too(at: int, garbage: bytes, answers: bool, cuts: list[int]) -> None:
    whole = stream(*EVENTS) + PLAIN if answers else CHUNKED_REQUEST + REQUEST
    wire = whole[:at] + garbage + whole[at:]
    assert raw(read(Reader(answers=answers), wire, cuts)) == wire


@pytest.mark.parametrize(
    "wire", [POSTGRES, b"*1\r\n$4\r\nPING\r\n", b"EHLO me\r\n", b"GET\n", b"GETTY images", b"HTTP/2"]
)
def test_another_protocol_is_not_held_for_a_moment(wire: bytes) -> None:
    assert list(Reader(answers=False).feed(wire)) == [Alien(wire)]


def test_an_answer_that_is_not_http_is_not_held_either() -> None:
    assert list(Reader(answers=True).feed(b"N")) == [Alien(b"N")]


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n bad: x\r\n\r\n",
        b"PUT / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    ],
)
def test_a_head_that_cannot_be_trusted_makes_the_rest_opaque(head: bytes) -> None:
    assert list(Reader(answers=False).feed(head + REQUEST)) == [Alien(head + REQUEST)]


def test_a_stream_that_is_joined_in_the_middle_is_understood_from_its_next_message() -> None:
    reader = Reader(answers=False)
    assert list(reader.feed(b"the rest of a body")) == [Alien(b"the rest of a body")]
    assert isinstance(next(iter(reader.feed(REQUEST))), Head)


def test_a_body_may_last_until_the_connection_ends() -> None:
    parts = read(Reader(answers=True), UNTIL_CLOSE)
    assert [type(part) for part in parts] == [Head, Data, End]


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_the_answer_to_head_has_no_body(method: str) -> None:
    head = PLAIN[:-4]
    ended = any(isinstance(part, End) for part in Reader(answers=True, asked_with=lambda: method).feed(head))
    assert ended is (method == "HEAD")


def test_the_method_of_each_answer_is_asked_for_when_its_turn_comes() -> None:
    methods = iter(["HEAD", "HEAD", "GET", "GET"])
    reader = Reader(answers=True, asked_with=lambda: next(methods))
    kinds = [type(part) for part in reader.feed(PLAIN[:-4] + PLAIN)]
    assert kinds == [Head, End, Head, Data, End]


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n",
    ],
)
def test_what_follows_an_upgrade_or_a_broken_chunk_is_opaque(wire: bytes) -> None:
    reader = Reader(answers=True)
    list(reader.feed(wire))
    assert list(reader.feed(PLAIN)) == [Alien(PLAIN)]


def _keeps(wire: bytes) -> bool:
    head = read_head(wire, answers=False)
    assert head
    return head.keep_alive


@pytest.mark.parametrize(
    ("wire", "keeps"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
    ],
)
def test_whether_a_connection_goes_on(wire: bytes, keeps: bool) -> None:
    assert _keeps(wire) is keeps


@pytest.mark.parametrize(
    ("wire", "framing"),
    [(PLAIN, Framing.LENGTH), (TRAILED, Framing.CHUNKED), (NO_CONTENT, Framing.NONE), (UNTIL_CLOSE, Framing.CLOSE)],
)
def test_how_a_body_ends_is_read_off_the_head(wire: bytes, framing: Framing) -> None:
    head = read_head(wire[: wire.index(b"\r\n\r\n") + 4], answers=True)
    assert head
    assert head.framing() is framing
