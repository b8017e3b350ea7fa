"""Further model ids: who is listed, who fails, who is slow, who talks."""

from __future__ import annotations

import pytest

from target_stack.engine import errors, replies, requests
from target_stack.engine.adapters import Adapter, Luck
from target_stack.engine.config import EngineConfig
from target_stack.engine.core import Core

LEAST = {"name": "e", "listen": "127.0.0.1:1", "model": "base"}
MESSAGES = [{"role": "user", "content": "hi"}]


def config(**habits) -> EngineConfig:
    return EngineConfig.from_json({**LEAST, "adapters": {"next": habits}})


def add(name: str, model: str, max_tokens: int = 3) -> dict:
    sampling = {"max_tokens": max_tokens, "min_tokens": 0, "ignore_eos": True, "stop": [], "draw": 0}
    return {"op": "add", "id": name, "model": model, "prompt": "hi", "sampling": sampling, "priority": 0, "seed": None}


def finished_after_s(subject: Core, now: float = 0.0) -> dict[str, float]:
    """When each request got its last token, in virtual time."""
    ends = {}
    while True:
        begun = subject.begin(now)
        if begun is None:
            wakes_at = subject.wakes_at(now)
            if wakes_at is None:
                return ends
            now = wakes_at
            continue
        now += begun[1]
        ends |= {out[0]: now for out in subject.finish(begun[0], now)["out"] if out[2]}


def test_an_adapter_is_listed_with_its_parent():
    base, adapter = replies.models("base", 1, 64, "x", ("next",))["data"]
    assert (base["parent"], adapter["id"], adapter["parent"], adapter["max_model_len"]) == (None, "next", "base", None)


def test_a_call_knows_which_model_id_was_asked_for_and_the_base_is_meant_by_none():
    calls = [requests.chat_call({"messages": MESSAGES, **model}, config()) for model in ({}, {"model": "next"})]
    assert [call.model for call in calls] == ["base", "next"]


def test_a_model_id_that_is_not_served_is_refused_with_the_base_as_its_alias():
    with pytest.raises(errors.ApiError, match=r"`nxt` does not exist\. Valid aliases: base\."):
        requests.chat_call({"messages": MESSAGES, "model": "nxt"}, config())


def test_the_same_requests_fail_on_every_run_and_about_as_many_as_were_asked_for():
    adapters = {"next": Adapter(error_share=0.3)}
    first, second = (Luck(7, adapters) for _ in range(2))
    fates = [first.fails("next") for _ in range(1000)]
    assert fates == [second.fails("next") for _ in range(1000)]
    assert 250 < sum(fates) < 350
    assert not any(first.fails("base") for _ in range(100))


@pytest.mark.parametrize(("verbosity", "least", "most"), [(3.0, 2.8, 3.4), (0.5, 0.4, 0.6)])
def test_verbosity_stretches_the_natural_length(verbosity, least, most):
    def length(subject: EngineConfig) -> int:
        core, tokens = Core(subject), 0
        message = add("a", "next", 400)
        message["sampling"]["ignore_eos"] = False
        core.handle(message, 0.0)
        while begun := core.begin(0.0):
            tokens += len(core.finish(begun[0], 0.0)["out"])
        return tokens

    assert least < length(config(verbosity=verbosity)) / length(config()) < most


def test_a_slow_adapter_stretches_its_own_answer_and_nobody_elses():
    alone = Core(config())
    alone.handle(add("a", "base"), 0.0)
    both = Core(config(slow_factor=4.0))
    both.handle(add("a", "base"), 0.0)
    both.handle(add("b", "next"), 0.0)
    ends = finished_after_s(both)
    assert ends["a"] == pytest.approx(finished_after_s(alone)["a"])
    assert ends["b"] > 3 * ends["a"]


@pytest.mark.parametrize(
    ("habits", "said"),
    [
        ({"speed": 2}, r"adapters\.next\.speed"),
        ({"error_share": 2}, "error_share 0 to 1"),
        ({"slow_factor": 0.5}, "slow_factor from 1"),
    ],
)
def test_habits_that_make_no_sense_are_refused_by_name(habits, said):
    with pytest.raises(ValueError, match=said):
        config(**habits)


def test_an_adapter_cannot_have_the_base_models_name():
    with pytest.raises(ValueError, match="'base' is the base model"):
        EngineConfig.from_json({**LEAST, "adapters": {"base": {}}})
