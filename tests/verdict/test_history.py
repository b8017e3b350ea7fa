"""The rules of a set, as properties: a store that keeps them is never accused, each way of breaking one is named."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

from chaos.verdict.history import compare

WRITES = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.sampled_from(["ok", "unknown", "never"]))


def split(writes: dict[str, str]) -> tuple[set[str], set[str], set[str]]:
    ok, unknown, never = ({key for key, how in writes.items() if how == kind} for kind in ("ok", "unknown", "never"))
    return ok, unknown, never


@given(WRITES, st.randoms(use_true_random=False))
def test_a_store_that_keeps_its_word_is_never_accused(writes: dict[str, str], dice: st.DataObject) -> None:
    ok, unknown, _ = split(writes)
    landed = {key for key in sorted(unknown) if dice.random() < 0.5}  # type: ignore[attr-defined]  # a random.Random
    assert 0 == compare(ok, unknown, Counter([*ok, *landed])).count


@given(WRITES, st.integers(0, 99))
def test_one_acknowledged_write_that_is_gone_is_lost_and_nothing_else(writes: dict[str, str], pick: int) -> None:
    ok, unknown, _ = split(writes)
    assume(ok)
    gone = sorted(ok)[pick % len(ok)]
    found = compare(ok, unknown, Counter(ok - {gone}))
    assert ((gone,), 1) == (found.lost, found.count)


@given(WRITES, st.integers(0, 99), st.integers(2, 4))
def test_one_write_that_is_there_twice_is_duplicated_acknowledged_or_not(
    writes: dict[str, str], pick: int, times: int
) -> None:
    ok, unknown, _ = split(writes)
    assume(ok | unknown)
    double = sorted(ok | unknown)[pick % len(ok | unknown)]
    found = compare(ok, unknown, Counter([*ok - {double}, *[double] * times]))
    assert ((double,), 1) == (found.duplicated, found.count)


@given(WRITES, st.integers(0, 99))
def test_one_write_that_nobody_sent_is_invented(writes: dict[str, str], pick: int) -> None:
    ok, unknown, never = split(writes)
    assume(never)
    ghost = sorted(never)[pick % len(never)]
    found = compare(ok, unknown, Counter([*ok, ghost]))
    assert ((ghost,), 1) == (found.invented, found.count)


def test_what_came_and_went_again_is_not_there() -> None:
    shelf = Counter({"a": 1})
    shelf["a"] -= 1
    assert ("a",) == compare({"a"}, set(), shelf).lost
    assert () == compare(set(), {"a"}, shelf).invented
