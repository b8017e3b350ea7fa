"""The text that a scrape reads."""

from __future__ import annotations

import pytest

from target_stack.engine.metrics import token_bounds
from target_stack.engine.prometheus import Family, Histogram, Number, number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (15179, "15179.0"),
        (0.25, "0.25"),
        (2179801088, "2.179801088e+09"),
        (1000000, "1e+06"),
        (5.8e-05, "5.8e-05"),
    ],
)
def test_numbers_look_as_the_python_client_writes_them(value, text):
    assert number_text(value) == text


def test_labels_are_sorted_and_escaped():
    family = Family("up", "gauge", "Help.")
    family.add({"b": 'say "hi"\n', "a": "1"}, Number()).value = 1
    assert list(family.lines())[-1] == 'up{a="1",b="say \\"hi\\"\\n"} 1.0'


def test_buckets_are_cumulative_and_their_bounds_inclusive():
    family = Family("t", "histogram", "Help.")
    histogram = family.add({}, Histogram((1, 2)))
    for value in (1, 1.5, 9):
        histogram.observe(value)
    assert list(family.lines())[2:] == [
        't_bucket{le="1.0"} 1.0',
        't_bucket{le="2.0"} 2.0',
        't_bucket{le="+Inf"} 3.0',
        "t_count 3.0",
        "t_sum 11.5",
    ]


def test_a_counter_has_its_time_of_creation_beside_it():
    family = Family("calls_total", "counter", "Help.", created=5.0)
    family.add({}, Number())
    assert list(family.lines())[-2:] == ["# TYPE calls_created gauge", "calls_created 5.0"]


def test_token_buckets_follow_1_2_5_up_to_the_context():
    assert token_bounds(1024) == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
