"""What a body must be, and what becomes of it."""

from __future__ import annotations

import pytest

from target_stack.engine import errors, requests
from target_stack.engine.config import EngineConfig
from target_stack.engine.text import Tokenizer

CONFIG = EngineConfig(name="e", listen="127.0.0.1:1", model="tiny", max_model_len=64)
MESSAGES = [{"role": "user", "content": "hi"}]


def refusal(body) -> dict:
    with pytest.raises(errors.ApiError) as refused:
        requests.chat_call(body, CONFIG)
    return refused.value.body["error"]


def test_the_model_may_be_left_out():
    assert requests.chat_call({"messages": MESSAGES}, CONFIG).n == 1


def test_a_chat_without_max_tokens_may_fill_the_context():
    call = requests.chat_call({"messages": MESSAGES}, CONFIG)
    assert call.sampling.max_tokens == 64 - call.prompt_tokens[0]


def test_a_budget_that_only_the_prompt_makes_too_long_is_clamped_not_refused():
    call = requests.chat_call({"messages": MESSAGES, "max_tokens": 64}, CONFIG)
    assert call.sampling.max_tokens == 64 - call.prompt_tokens[0]


def test_a_text_completion_is_16_tokens_by_default():
    assert requests.completion_call({"prompt": "once"}, CONFIG, Tokenizer()).sampling.max_tokens == 16


def test_a_prompt_beyond_the_context_names_input_tokens():
    assert refusal({"messages": [{"role": "user", "content": "word " * 80}]})["param"] == "input_tokens"


def test_max_completion_tokens_is_the_newer_name():
    assert requests.chat_call({"messages": MESSAGES, "max_completion_tokens": 3}, CONFIG).sampling.max_tokens == 3
    assert refusal({"messages": MESSAGES, "max_completion_tokens": 65})["param"] == "max_completion_tokens"


def test_a_wrong_type_is_named_with_its_place():
    problem = refusal({"messages": MESSAGES, "max_tokens": "many"})
    assert (problem["param"], problem["type"]) == ("body.max_tokens", "Bad Request")
    assert "'type': 'int_type'" in problem["message"]


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"messages": ["hi"]}, "body.messages.0"),
        ({"messages": [{"content": "hi"}]}, "body.messages.0.role"),
        ({"messages": [{"role": "user", "content": 7}]}, "body.messages.0.content"),
        ({"n": 0}, "body.n"),
        ({"stream_options": {"include_usage": True}}, "body"),
        ({"stop": [1]}, "body.stop"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"priority": 3}, "priority"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 2.5}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"presence_penalty": 3}, None),
        ({"min_tokens": -1}, None),
        ({"min_tokens": 9, "max_tokens": 3}, None),
        ({"stop": [""]}, None),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tools": [{"type": "function"}]}, None),
    ],
)
def test_each_bad_value_is_refused_with_its_parameter(extra, param):
    found = refusal({"messages": MESSAGES, **extra})
    assert (found["code"], found["param"]) == (400, param)


@pytest.mark.parametrize("body", [None, 7, "text", []])
def test_a_body_that_is_no_object_is_refused(body):
    assert refusal(body)["param"] == "body"


def test_unknown_fields_are_ignored():
    assert requests.chat_call({"messages": MESSAGES, "guided_json": {}}, CONFIG).n == 1


def test_half_a_surrogate_pair_is_refused_before_it_can_break_a_reply():
    with pytest.raises(errors.ApiError):
        requests.parse_json(b'{"prompt": "\\ud800"}')


def test_what_is_not_simulated_is_refused_not_faked():
    assert refusal({"messages": MESSAGES, "logprobs": True})["param"] == "logprobs"


def test_prompts_may_be_texts_or_token_ids():
    tokenizer = Tokenizer()
    ids = tokenizer.encode("a lamp")
    assert requests.completion_prompts(["x", "y"], tokenizer) == ("x", "y")
    assert requests.completion_prompts(ids, tokenizer) == ("a lamp",)
    assert requests.completion_prompts([ids, ids], tokenizer) == ("a lamp", "a lamp")


def test_a_sentence_about_a_sampling_parameter_is_the_servers():
    found = refusal({"messages": MESSAGES, "temperature": -1})
    assert found["message"] == "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)"


def test_tools_may_be_shown_to_a_model_that_is_not_to_use_them():
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert requests.chat_call({"messages": MESSAGES, "tools": tools, "tool_choice": "none"}, CONFIG).n == 1


def test_the_priority_header_wins_over_the_field_unless_it_is_no_number():
    config = EngineConfig(name="e", listen="127.0.0.1:1", model="tiny", scheduling_policy="priority")
    body = {"messages": MESSAGES, "priority": 4}
    found = [requests.chat_call(body, config, {"X-Vllm-Priority": text}).priority for text in ("-2", "soon")]
    assert found == [-2, 4]
