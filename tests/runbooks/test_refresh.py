"""A refresh changes what is between the markers and not one byte more, or it refuses and says why."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chaos.runbooks.parse import BEGIN, END, BrokenMarkers, MergeConflict, RunbookError, split
from chaos.runbooks.refresh import refresh

PAGE = b"# Title\n\n## Rehearsed by\n\n" + BEGIN + b"\nold\n" + END + b"\n\nafter\n"

outside = st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode))


@given(before=outside, after=outside, block=st.text(max_size=100))
def test_every_byte_outside_the_block_stays(before: bytes, after: bytes, block: str) -> None:
    """Whatever people wrote: other encodings, CRLF, BOM, no last newline."""
    text = before + BEGIN + b"\nold\n" + END + after
    assume(text.count(BEGIN) == text.count(END) == 1)
    try:
        fresh = refresh(text, block)
    except (MergeConflict, UnicodeEncodeError):
        return
    assert fresh.startswith(before + BEGIN)
    assert fresh.endswith(END + after)
    assert split(fresh).before + split(fresh).block + split(fresh).after == fresh


@given(block=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=100))
def test_refreshing_twice_changes_nothing(block: str) -> None:
    once = refresh(PAGE, block)
    assert refresh(once, block) == once


def test_the_block_stands_on_lines_of_its_own() -> None:
    assert split(refresh(PAGE, "new")).block == b"\nnew\n"


def test_a_page_with_windows_line_ends_gets_a_block_with_them() -> None:
    page = b"\xef\xbb\xbf" + PAGE.replace(b"\n", b"\r\n")
    fresh = refresh(page, "a\nb")
    assert split(fresh).block == b"\r\na\r\nb\r\n"
    assert fresh.startswith(b"\xef\xbb\xbf# Title\r\n")
    assert b"\n" not in fresh.replace(b"\r\n", b"")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"no markers", BrokenMarkers),
        (BEGIN + b"only a begin", BrokenMarkers),
        (b"only an end" + END, BrokenMarkers),
        (END + BEGIN, BrokenMarkers),
        (PAGE + PAGE, BrokenMarkers),
        (b"<<<<<<< ours\n" + PAGE + b"=======\n>>>>>>> theirs\n", MergeConflict),
        (PAGE.replace(b"old", b"<<<<<<< HEAD\nold\n=======\nnew\n>>>>>>> other"), MergeConflict),
    ],
)
def test_a_page_that_cannot_be_refreshed_is_refused(text: bytes, error: type[RunbookError]) -> None:
    with pytest.raises(error):
        refresh(text, "block")


def test_a_block_with_a_marker_is_refused() -> None:
    with pytest.raises(RunbookError):
        refresh(PAGE, END.decode())


def test_a_heading_underline_is_no_conflict() -> None:
    assert b"new" in refresh(PAGE + b"Heading\n========\n", "new")
