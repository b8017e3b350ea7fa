"""Quantities: text with a unit in, the same text out, plain numbers in between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.units import Duration, Rate, Ratio, Size, UnitError


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.00025, "250us"), (0.04, "40ms"), (1.5, "1.5s"), (120, "2m"), (3600, "1h"), (0, "0s")]
)
def test_a_duration_is_seconds(seconds, text):
    assert seconds == pytest.approx(Duration.parse(text))


@pytest.mark.parametrize(("per_second", "text"), [(20, "20/s"), (1.5, "90/m"), (1 / 360, "10/h")])
def test_a_rate_is_events_per_second(per_second, text):
    assert per_second == pytest.approx(Rate.parse(text))


@pytest.mark.parametrize(("share", "text"), [(0.995, "99.5%"), (0, "0%"), (1, "100%")])
def test_a_ratio_is_a_share_from_0_to_1(share, text):
    assert share == pytest.approx(Ratio.parse(text))


@pytest.mark.parametrize(
    ("size", "text"), [(512, "512B"), (64_000, "64KB"), (65_536, "64KiB"), (1_572_864, "1.5MiB"), (2**30, "1GiB")]
)
def test_a_size_is_bytes(size, text):
    assert size == Size.parse(text)


@pytest.mark.parametrize(
    "text", ["", "s", "15", "-5s", "+5s", "1e3s", "15 s", "15S", "15min", ".5s", "5.s", "15s\n", "1_0s"]
)
def test_a_duration_needs_digits_and_a_known_unit(text):
    with pytest.raises(UnitError):
        Duration.parse(text)


@pytest.mark.parametrize("text", ["100.1%", "-1%", "99", "0.99"])
def test_a_ratio_is_from_0_to_100_percent(text):
    with pytest.raises(UnitError):
        Ratio.parse(text)


@pytest.mark.parametrize(
    ("example", "cls", "text"),
    [
        ("15s", Duration, "15"),
        ("30s", Duration, "soon"),
        ("5/s", Rate, "5"),
        ("20/s", Rate, "5/d"),
        ("99%", Ratio, "99"),
        ("99%", Ratio, "990"),
        ("64KiB", Size, "64"),
    ],
)
def test_an_error_shows_a_valid_example_near_what_was_written(example, cls, text):
    with pytest.raises(UnitError) as caught:
        cls.parse(text)
    assert example == caught.value.example
    assert cls.parse(caught.value.example) > 0


@pytest.mark.parametrize("cls", [Duration, Rate, Ratio, Size])
@given(number=st.integers(min_value=0, max_value=10**9))
def test_what_prints_reads_back(cls, number):
    value = cls(number % 10_001 / 10_000 if cls is Ratio else number)
    assert float(cls.parse(str(value))) == pytest.approx(float(value), rel=1e-5)


def test_a_quantity_is_a_number_in_arithmetic_and_carries_its_unit_in_text():
    assert Duration(1.5) + 1 == 2.5
    assert f"{Duration(1.5)} {Rate(20)} {Ratio(0.995)} {Size(65_536)}" == "1.5s 20/s 99.5% 64KiB"
