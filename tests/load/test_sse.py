"""Server-sent events in any pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chaos.load.sse import LONGEST_LINE, SseParser


def feed(*chunks):
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_an_event_is_its_data_lines_joined():
    assert feed(b"data: a\ndata:b\n\n") == [b"a\nb"]


def test_comments_and_other_fields_are_skipped():
    assert feed(b": keep-alive\n\nevent: x\nid: 3\ndata: a\n\n") == [b"a"]


def test_an_event_without_its_empty_line_is_not_whole():
    assert feed(b"data: a\n") == []


def test_a_line_without_end_is_bounded():
    parser = SseParser()
    for _ in range(LONGEST_LINE // 2**20 + 1):
        parser.feed(b"x" * 2**20)
    assert parser.overflow
    assert parser.feed(b"\ndata: a\n\n") == []


@given(
    st.lists(st.tuples(st.text("ab\N{EURO SIGN} ", max_size=6), st.sampled_from(["\n", "\r\n", "\r"])), max_size=8),
    st.lists(st.integers(0, 200), max_size=12),
)
def test_cuts_change_nothing(events, cuts):
    whole = "".join(f"data: {text}{end}{end}" for text, end in events).encode()
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    pieces = [whole[a:b] for a, b in pairwise(places)]
    assert feed(*pieces) == [text.encode() for text, _ in events]
