"""The OpenAI SDK against a real engine: what it reads, and what it raises."""

from __future__ import annotations

import os
import signal

import openai
import pytest

pytestmark = pytest.mark.system

HELLO = [{"role": "user", "content": "hello"}]
LONG = {"ignore_eos": True}


@pytest.fixture
def connect(start_engine):
    """Start an engine; it and a client of it."""
    clients: list[openai.OpenAI] = []

    def connected(**settings):
        engine = start_engine(**settings)
        clients.append(openai.OpenAI(base_url=f"http://127.0.0.1:{engine.port}/v1", api_key="none", max_retries=0))
        return engine, clients[-1]

    yield connected
    for client in clients:
        client.close()


def test_it_reads_chats_completions_models_and_streams(connect):
    _, client = connect(adapters={"next": {}})
    whole = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=5, extra_body=LONG)
    assert (whole.choices[0].finish_reason, whole.usage.completion_tokens) == ("length", 5)
    options = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(
            model="next", messages=HELLO, max_tokens=5, stream=True, stream_options=options, extra_body=LONG
        )
    )
    assert {chunk.model for chunk in chunks} == {"next"}
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None] * 5 + ["length"]
    assert chunks[-1].usage.completion_tokens == 5
    words = "".join(chunk.choices[0].delta.content for chunk in chunks if chunk.choices)
    assert words == whole.choices[0].message.content
    text = client.completions.create(model="tiny", prompt="once", max_tokens=3)
    assert text.usage.completion_tokens == 3
    assert [model.id for model in client.models.list()] == ["tiny", "next"]


def test_it_raises_the_class_that_belongs_to_each_refusal(connect):
    _, client = connect(max_num_queued_reqs=0, max_model_len=64)
    ask = client.chat.completions.create
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        ask(model="nope", messages=HELLO)
    with pytest.raises(openai.BadRequestError) as refused:
        ask(model="tiny", messages=HELLO, max_tokens=999)
    assert refused.value.param == "max_tokens"
    for stream in (False, True):
        with pytest.raises(openai.InternalServerError) as busy:
            ask(model="tiny", messages=HELLO, stream=stream)
        assert (busy.value.status_code, busy.value.type) == (503, "Service Unavailable")
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="tiny", input="x")


def test_it_raises_in_the_middle_of_a_stream_whose_core_was_killed(connect):
    engine, client = connect()
    stream = client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=400, stream=True, extra_body=LONG)
    for _ in range(3):
        next(stream)
    os.kill(engine.core, signal.SIGKILL)
    with pytest.raises(openai.APIError, match="EngineCore encountered an issue"):
        list(stream)


def test_it_raises_for_a_share_of_requests_when_a_release_is_bad(connect):
    _, client = connect(adapters={"next": {"error_share": 1.0}})
    with pytest.raises(openai.InternalServerError, match="Internal server error"):
        client.chat.completions.create(model="next", messages=HELLO)
    assert client.chat.completions.create(model="tiny", messages=HELLO).choices
