"""Sketches of pauses."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.journal.record import Sample
from chaos.journal.sketch import ERROR, NEVER, UNIT_S, Pauses, bounds_of, buckets_of, sketches
from chaos.journal.tables import SampleTable
from chaos.verdict.statistics import rank_of

PAUSES = st.lists(st.floats(0, 1e5) | st.just(math.inf), max_size=60)
ROUNDING = 1e-9


def sketched(*rows):
    return Pauses.counted(np.bincount(buckets_of(np.array([each for row in rows for each in row])), minlength=1))


def row(number, gaps_s):
    return Sample(
        "chat", number, 1, True, 0.0, 0.0, 0.1, 1.0, "good", "", 200, "engine-a", "", 5, tuple(gaps_s), None, "", None
    )


@given(st.floats(UNIT_S, 1e9, exclude_min=True))
def test_every_pause_is_told_with_an_error_of_at_most_one_percent(pause_s):
    low, told, high = (float(side[0]) for side in bounds_of(buckets_of(np.array([pause_s]))))
    assert abs(told - pause_s) <= (ERROR + ROUNDING) * pause_s
    assert low * (1 - ROUNDING) <= pause_s <= high * (1 + ROUNDING)


@given(PAUSES.filter(bool), st.floats(0.01, 0.99))
def test_a_quantile_of_a_sketch_is_the_quantile_of_its_pauses_to_one_percent(pauses_s, q):
    rank = rank_of(len(pauses_s), q)
    true_s, found = sorted(pauses_s)[rank - 1], sketched(pauses_s)
    told_s = float(found.value[found.at(rank)])
    assert told_s == true_s or abs(told_s - true_s) <= max((ERROR + ROUNDING) * true_s, UNIT_S)


def test_what_is_at_most_a_microsecond_is_nothing_and_what_never_ends_is_endless():
    buckets = buckets_of(np.array([0.0, 1e-9, 1e-6, math.inf]))
    assert buckets.tolist() == [0, 0, 0, NEVER]
    low, told, high = bounds_of(buckets)
    assert (low.tolist(), told.tolist()) == ([0.0, 0.0, 0.0, math.inf], [0.0, 0.0, 0.0, math.inf])
    assert high.tolist() == [UNIT_S] * 3 + [math.inf]


@settings(max_examples=50)
@given(st.lists(PAUSES, max_size=6))
def test_the_sketches_of_rows_merge_into_the_sketch_of_all_their_pauses(rows):
    table = SampleTable.build(row(number, pauses) for number, pauses in enumerate(rows))
    merged, at_once = table.pauses(table.final), sketched(*rows)
    assert (merged.value.tolist(), merged.count.tolist()) == (at_once.value.tolist(), at_once.count.tolist())


@given(st.lists(PAUSES, max_size=6))
def test_each_row_has_its_own_sketch(rows):
    ends, buckets, counts = sketches(rows)
    for number, pauses in enumerate(rows):
        mine = slice(ends[number], ends[number + 1])
        assert counts[mine].sum() == len(pauses)
        assert buckets[mine].tolist() == sorted(set(buckets_of(np.array(pauses, dtype=float)).tolist()))


def test_a_long_stream_takes_no_more_room_than_a_short_one():
    steady = [0.02 + 0.004 * (n % 50) / 50 for n in range(100_000)]
    _, buckets, counts = sketches([steady])
    assert (len(buckets) < 12, counts.sum()) == (True, 100_000)


def test_no_rows_and_empty_rows_have_no_pauses():
    assert [each.tolist() for each in sketches([])] == [[0], [], []]
    assert [each.tolist() for each in sketches([(), ()])] == [[0, 0, 0], [], []]
    assert len(sketched()) == 0


def test_streams_that_broke_are_the_longest_pauses():
    found = sketched([0.1, 0.2]).and_never(3)
    assert (len(found), found.count.tolist()) == (5, [1, 1, 3])
    assert [math.isinf(found.value[found.at(rank)]) for rank in range(1, 6)] == [False, False, True, True, True]
    assert len(found.and_never(0)) == 5
