"""Nothing that a client sends breaks the gateway, and nothing bad reaches what stands behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.system

GOOD: dict[str, Any] = {"model": "brownout-chat", "messages": [{"role": "user", "content": "Hi?"}], "stream": True}
TEXTS = st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
KNOWN = (
    *("model", "messages", "stream", "stream_options", "temperature", "top_p", "n", "max_tokens", "min_tokens", "stop"),
    *("max_completion_tokens", "presence_penalty", "frequency_penalty", "seed", "user", "logprobs", "top_logprobs"),
    *("tools", "logit_bias", "response_format", "metadata", "parallel_tool_calls"),
)
FUZZ = settings(
    max_examples=80, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def door(serve: Any) -> Iterator[Any]:
    """`door(path, body, **headers)` gives the reply and whether anything behind the gateway was asked."""
    with asyncio.Runner() as runner:
        running = serve()
        stack = runner.run(_enter(running))

        def asked() -> int:
            engines = len(stack.a.asked + stack.b.asked + stack.small.asked)
            return engines + len(stack.embedder.calls) + len(stack.tools.calls) + stack.store.connections

        def knock(path: str, body: bytes, **headers: str) -> tuple[Any, bool]:
            before = asked()
            reply = runner.run(stack.post(path, data=body, headers=headers))
            return reply, asked() > before

        try:
            yield knock
        finally:
            runner.run(_leave(running))


async def _enter(running: Any) -> Any:
    return await running.__aenter__()


async def _leave(running: Any) -> None:
    await running.__aexit__(None, None, None)


def check(reply: Any, went_on: bool) -> None:
    """Served, or refused in OpenAI's shape without anybody having been asked."""
    assert reply.status == 200 or 400 <= reply.status < 500, (reply.status, reply.text)
    if reply.status >= 400:
        assert set(reply.json["error"]) == {"message", "type", "param", "code"}
        assert not went_on


@given(body=st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()))
@FUZZ
def test_whatever_bytes_come_they_are_refused_and_go_no_further(door: Any, body: bytes) -> None:
    for path in ("/v1/chat/completions", "/v1/rag", "/v1/embeddings"):
        check(*door(path, body))


@given(key=st.sampled_from(KNOWN), value=VALUES)
@FUZZ
def test_a_good_request_with_one_odd_field_is_served_or_told_which_field_it_is(door: Any, key: str, value: Any) -> None:
    reply, went_on = door("/v1/chat/completions", json.dumps({**GOOD, key: value}).encode())
    check(reply, went_on)
    param = reply.json["error"]["param"] if reply.status >= 400 else key
    assert param is None or param.startswith((key, "stream_options")), reply.text


@given(
    message=VALUES
    | st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "tool", "boss"]), "content": VALUES})
)
@FUZZ
def test_an_odd_message_is_served_or_told_by_its_place(door: Any, message: Any) -> None:
    for path in ("/v1/chat/completions", "/v1/rag"):
        reply, went_on = door(path, json.dumps({**GOOD, "messages": [GOOD["messages"][0], message]}).encode())
        check(reply, went_on)
        if reply.status >= 400:
            assert reply.json["error"]["param"] is None or reply.json["error"]["param"].startswith("messages")


@given(
    name=st.sampled_from(["x-deadline-ms", "x-priority", "x-cache", "traceparent", "x-stainless-retry-count"]),
    value=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
)
@FUZZ
def test_an_odd_header_is_passed_over_or_refused(door: Any, name: str, value: str) -> None:
    reply, went_on = door("/v1/chat/completions", json.dumps(GOOD).encode(), **{name: value})
    if reply.status != 503:  # a resend without budget, or a deadline that is over
        check(reply, went_on)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}', None),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', None),
        (b'{"messages": [{"role": "user", "content": "x"}], "metadata": ' + b'{"a":' * 900 + b"1" + b"}" * 901, None),
        (b'{"messages": [{"role": "user", "content": [{"type": "text"}]}]}', "messages[0].content"),
        (b'{"messages": [{"role": "user", "content": "x"}], "stop": [1]}', "stop"),
        (b'{"messages": [{"role": "user", "content": "x"}], "seed": 1.5}', "seed"),
        (b'{"messages": [{"role": "user", "content": "x"}], "min_tokens": 9, "max_tokens": 8}', "min_tokens"),
        (b'{"messages": [{"role": "user", "content": "x"}], "n": ' + b"9" * 5000 + b"}", None),
    ],
)
def test_what_the_next_hop_could_not_read_stops_here(door: Any, body: bytes, param: str | None) -> None:
    reply, went_on = door("/v1/chat/completions", body)
    assert (reply.status, reply.json["error"]["param"], went_on) == (400, param, False)


def test_a_body_that_is_not_what_its_encoding_says_is_refused(door: Any) -> None:
    check(*door("/v1/chat/completions", b"not gzip", **{"content-encoding": "gzip"}))


def test_deep_nesting_within_reason_is_served(door: Any) -> None:
    body = {**GOOD, "metadata": json.loads('{"a":' * 60 + "1" + "}" * 60)}
    reply, went_on = door("/v1/chat/completions", json.dumps(body).encode())
    assert (reply.status, went_on) == (200, True)
