"""A described field says everything about itself once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from chaos.settings import setting, settings_of
from chaos.units import Duration


@dataclass(frozen=True)
class Example:
    for_: Duration = setting("how long")
    times: int = setting("how often", default=3, least=1, most=9)
    target: str | None = setting("who", default=None, key="aim")
    private: int = 7


def test_settings_come_in_order_and_only_described_fields_are_settings():
    assert [s.key for s in settings_of(Example)] == ["for", "times", "aim"]


def test_types_are_resolved_so_that_a_decoder_can_use_them():
    assert [Duration, int, str | None] == [s.type for s in settings_of(Example)]


def test_a_field_without_default_is_required():
    assert [s.required for s in settings_of(Example)] == [True, False, False]
    assert [s.default for s in settings_of(Example)] == [None, 3, None]


def test_a_trailing_underscore_is_not_part_of_the_key():
    assert next((s.key, s.field) for s in settings_of(Example)) == ("for", "for_")


def test_bounds_and_doc_travel_with_the_setting():
    times = list(settings_of(Example))[1]
    assert (times.doc, times.least, times.most) == ("how often", 1, 9)


def test_the_dataclass_itself_is_an_ordinary_one():
    assert Example(Duration(1), 3, None, 7) == Example(for_=Duration(1))
    with pytest.raises(TypeError):
        Example()
