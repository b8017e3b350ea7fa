"""The speed of the simulated GPU."""

from __future__ import annotations

import pytest

from target_stack.engine.cost import Cost


def test_a_short_prompt_alone_takes_about_twenty_milliseconds():
    assert Cost().step_s(prefill_tokens=40, decoding=0) == pytest.approx(0.020)


def test_a_lone_decode_step_takes_about_eight_milliseconds():
    assert Cost().step_s(prefill_tokens=0, decoding=1) == pytest.approx(0.0084)


def test_prefill_and_decode_share_the_fixed_part_of_a_step():
    cost = Cost(prefill_s_base=0.012, prefill_s_per_token=0.0, decode_s_per_step=0.008, batch_effect=0.0)
    assert cost.step_s(prefill_tokens=10, decoding=5) == pytest.approx(0.012)


def test_an_unknown_part_is_named():
    with pytest.raises(ValueError, match=r"cost\.speed"):
        Cost.from_json({"speed": 1.0})
