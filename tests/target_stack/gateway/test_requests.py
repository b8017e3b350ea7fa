"""Requests are checked before anything reaches an engine, and reach it in the agreed form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.errors import GatewayError
from target_stack.gateway.requests import ChatRequest, chat_request

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(("model", "messages", "stream", "max_tokens", "n", "temperature", "stream_options", "other"))


def status_of(fields: dict[str, Any]) -> int:
    try:
        read(**fields).upstream("m")
    except GatewayError as error:
        return error.status
    return 200


def read(**fields: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi?"}], **fields}
    return chat_request(json.dumps(body).encode(), "m")


@given(st.dictionaries(KEYS, JSON))
def test_any_json_object_is_accepted_or_refused_with_4xx(fields: dict[str, Any]) -> None:
    assert 200 <= status_of(fields) < 500


@given(st.binary(max_size=50))
def test_any_bytes_are_refused_politely(body: bytes) -> None:
    with pytest.raises(GatewayError):
        chat_request(body, "m")


def test_an_engine_is_always_asked_for_a_stream_with_its_own_model_name() -> None:
    asked = read(max_tokens=5).upstream("small")
    assert (asked["stream"], asked["model"], asked["max_tokens"]) == (True, "small", 5)
    assert asked["stream_options"] == {"include_usage": True}
    assert read(stream=True).upstream("m")["stream_options"] == {"include_usage": True}


def test_the_question_is_the_last_user_message_also_in_parts() -> None:
    parts = [{"type": "text", "text": "Where"}, {"type": "image_url"}, {"type": "text", "text": "is it?"}]
    talk = [
        {"role": "user", "content": "Before"},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "Well"},
    ]
    assert read(messages=talk).question() == "Where\nis it?"


def test_context_goes_into_the_last_user_message_and_the_talk_stays() -> None:
    talk = [
        {"role": "user", "content": "Before"},
        {"role": "assistant", "content": "Yes"},
        {"role": "user", "content": "Q?"},
    ]
    messages = read(messages=talk).with_context([("doc-1", "One."), ("doc-2", "Two.")]).upstream("m")["messages"]
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"] == "Context:\n[doc-1] One.\n[doc-2] Two.\n\nQuestion: Q?"


@pytest.mark.parametrize("content", ["", "   ", [{"type": "image_url"}]])
def test_a_question_without_text_is_refused(content: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        read(messages=[{"role": "user", "content": content}]).question()
    assert caught.value.body["error"]["param"] == "messages[0].content"
