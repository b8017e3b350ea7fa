"""Nearest kept question."""

from __future__ import annotations

from typing import Any

import pytest

from target_stack.gateway.cache.index import Entry, VectorIndex, unit


def entry(*numbers: float, **more: Any) -> Entry:
    return Entry(**{"scope": "s", "embedder": "e", "vector": unit(numbers), "telling": ("how",), **more})


def test_the_nearest_is_found_with_its_cosine() -> None:
    index = VectorIndex(10)
    index.add("east", entry(1, 0))
    index.add("north", entry(0, 2))
    assert index.nearest(entry(1, 2), 0.5) == ("north", pytest.approx(0.894, abs=0.001))
    assert index.nearest(entry(1, 2), 0.9) is None


@pytest.mark.parametrize("other", [{"scope": "t"}, {"embedder": "f"}, {"telling": ("where",)}], ids=str)
def test_another_scope_embedder_or_kind_of_question_is_never_near(other: dict[str, Any]) -> None:
    index = VectorIndex(10)
    index.add("mine", entry(1, 0, **other))
    assert index.nearest(entry(1, 0), 0.0) is None


def test_the_oldest_goes_first_and_the_gone_are_forgotten() -> None:
    index = VectorIndex(2)
    for key in ("a", "b", "a", "c"):
        index.add(key, entry(1, 0))
    assert ("a" in index, "b" in index, len(index)) == (True, False, 2)
    index.forget("a")
    index.forget("a")
    assert "a" not in index


def test_a_text_without_words_has_no_direction_and_is_near_nothing() -> None:
    index = VectorIndex(2)
    index.add("silence", entry(0, 0))
    assert index.nearest(entry(0, 0), 0.1) is None
