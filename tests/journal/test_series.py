"""Names of series."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.journal.series import parse_series, scan_series, series_name

NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)


@given(NAMES, st.dictionaries(NAMES, st.text(), max_size=4))
def test_a_series_name_reads_back_whatever_its_labels_hold(name, labels):
    assert parse_series(series_name(name, labels)) == (name, labels)


def test_labels_are_sorted_so_that_one_series_has_one_name():
    assert series_name("up", {"b": "2", "a": "1"}) == 'up{a="1",b="2"}'


def test_the_rest_of_a_line_is_left_over():
    assert scan_series('vllm:running{model="a b", rank="0",} 3.0') == (
        "vllm:running",
        {"model": "a b", "rank": "0"},
        " 3.0",
    )
    assert scan_series("up{} 1") == ("up", {}, " 1")
    assert scan_series("up 1") == ("up", {}, " 1")


@pytest.mark.parametrize("text", ["", "1x", "up{", "up{a}", 'up{a="b"', "up 1", 'up{a="b"}x'])
def test_what_is_no_series_is_refused(text):
    with pytest.raises(ValueError, match="series"):
        parse_series(text)
