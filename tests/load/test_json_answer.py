"""JSON that was expected is told from JSON that was not, by keys and values and never by chance."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.load.json_answer import is_json_like
from chaos.load.prompts import load_prompts, prompts_dirs

ORDER = '{"order": "B-1001", "status": "shipped", "paid_cents": 4990, "gift": true, "parcels": [{"id": "P-1"}]}'


@pytest.mark.parametrize(
    "wanted",
    [
        {"status": "shipped"},
        {"paid_cents": "<number>", "gift": "<boolean>", "parcels": "<list>", "order": "<text>"},
        {"parcels": [{"id": "<text>"}]},
        {"parcels": ["<object>"], "paid_cents": 4990.0},
    ],
)
def test_what_holds_all_that_was_expected_is_right(wanted: Any) -> None:
    assert is_json_like(ORDER, wanted)
    assert is_json_like(f"```json\n{ORDER}\n```", wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"status": "packed"},
        {"state": "shipped"},
        {"gift": "<number>"},
        {"gift": 1},
        {"paid_cents": "4990"},
        {"parcels": []},
        {"parcels": [{"id": "P-1"}, {"id": "P-2"}]},
        {"parcels": {"id": "P-1"}},
        ["<object>"],
    ],
)
def test_what_differs_in_one_place_is_wrong(wanted: Any) -> None:
    assert not is_json_like(ORDER, wanted)


@pytest.mark.parametrize("text", ["", "shipped", f"Here it is: {ORDER}", ORDER[:-1], "[" * 100_000])
def test_what_is_no_json_as_a_whole_is_wrong(text: str) -> None:
    assert not is_json_like(text, {"status": "shipped"})


def test_a_prompt_set_says_what_it_expects() -> None:
    calls = load_prompts("tool-calls", prompts_dirs(None))
    assert {"status": "shipped", "order": "B-1001"}.items() <= calls[0].expect_json.items()
