"""OpenAI's own SDK, and clients that leave, against a gateway and an engine that are real processes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.loopback import free_address

pytestmark = pytest.mark.system

MODEL = "brownout-chat"
TOKEN_S = 0.02
PROMPT_TOKEN_S = 0.004
LONG = 400  # tokens: eight seconds, so that an answer which is gone sooner was stopped
GONE_WITHIN_S = 4.0
COST = {
    "prefill_s_base": 0.01,
    "prefill_s_per_token": PROMPT_TOKEN_S,
    "decode_s_per_step": TOKEN_S,
    "batch_effect": 0.0,
}
PATIENT = {"deadline": {"total_s": 30.0, "per_try_s": 30.0, "first_token_s": 10.0, "inter_token_s": 5.0}}


@dataclass
class Live:
    """The two processes, and what their clients and operating system see of them."""

    gateway: str
    engine: str
    engine_pid: int

    def sdk(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"http://{self.gateway}/v1", api_key="none", max_retries=0, timeout=20.0)

    def ask(self, words: str = "hello", tokens: int = LONG) -> http.client.HTTPConnection:
        """Send a streaming chat that is exactly so long; closing the connection is hanging up."""
        connection = http.client.HTTPConnection(self.gateway, timeout=20.0)
        body = {"messages": [{"role": "user", "content": words}], "max_tokens": tokens, "ignore_eos": True}
        headers = {"content-type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps({**body, "stream": True}), headers)
        return connection

    def gauges(self) -> tuple[float, float, float]:
        """Running and waiting requests and the share of KV blocks in use, as the engine shows them."""
        page = _get(self.engine, "/metrics")[1]
        names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
        lines = [next(line for line in page.splitlines() if line.startswith(f"vllm:{name}{{")) for name in names]
        running, waiting, used = (float(line.rpartition(" ")[2]) for line in lines)
        return running, waiting, used

    def kill_core(self) -> None:
        children = Path(f"/proc/{self.engine_pid}/task/{self.engine_pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)


def _get(address: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=10.0)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def until(seen: Callable[[], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not seen():
        assert time.monotonic() < deadline, f"not seen in {within_s} s"
        time.sleep(0.02)


def _answers(address: str, path: str) -> bool:
    try:
        return _get(address, path)[0] == 200
    except OSError:
        return False


@contextlib.contextmanager
def serving() -> Iterator[Live]:
    gateway, engine = free_address(), free_address()
    of_engine = {"name": "engine-a", "listen": engine, "model": MODEL, "max_num_seqs": 2, "cost": COST}
    upstream = {"name": "engine-a", "url": f"http://{engine}"}
    of_gateway = {"listen": gateway, "model": MODEL, "engines": [upstream], "policies": PATIENT}
    processes = [
        subprocess.Popen([sys.executable, "-m", "target_stack.serve", component, json.dumps(config)])
        for component, config in (("engine", of_engine), ("gateway", of_gateway))
    ]
    try:
        until(lambda: _answers(engine, "/health") and _answers(gateway, "/health"))
        yield Live(gateway, engine, processes[0].pid)
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with serving() as running:
        yield running


def chat(live: Live, **more: Any) -> Any:
    fields = {"model": MODEL, "messages": [{"role": "user", "content": "Hello, how are you?"}], "max_tokens": 8}
    return live.sdk().chat.completions.create(**{**fields, **more})


def test_the_sdk_gets_a_whole_answer(live: Live) -> None:
    answer = chat(live)
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_the_sdk_streams_the_same_answer(live: Live) -> None:
    chunks = list(chat(live, stream=True, temperature=0))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == chat(live, temperature=0).choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] in ("stop", "length")


def test_the_sdk_lists_and_finds_the_model(live: Live) -> None:
    assert [MODEL] == [model.id for model in live.sdk().models.list()]
    assert live.sdk().models.retrieve(MODEL).owned_by == "brownout"
    with pytest.raises(openai.NotFoundError):
        live.sdk().models.retrieve("gpt-9")


@pytest.mark.parametrize(
    ("fields", "raised", "param"),
    [
        ({"messages": []}, openai.BadRequestError, "messages"),
        ({"model": "gpt-9"}, openai.NotFoundError, "model"),
        ({"max_tokens": 0}, openai.BadRequestError, "max_tokens"),
        ({"temperature": 9}, openai.BadRequestError, "temperature"),
        ({"extra_headers": {"x-priority": "boss"}}, openai.BadRequestError, "x-priority"),
        ({"extra_headers": {"x-deadline-ms": "soon"}}, openai.BadRequestError, "x-deadline-ms"),
        ({"max_tokens": 1 << 19}, openai.BadRequestError, "max_tokens"),  # the engine's own refusal
    ],
)
def test_the_sdk_raises_on_bad_input_and_names_the_parameter(
    live: Live, fields: dict[str, Any], raised: type[openai.APIStatusError], param: str
) -> None:
    with pytest.raises(raised) as caught:
        chat(live, **fields)
    assert param == caught.value.param


def test_the_sdk_raises_on_a_body_that_is_too_large(live: Live) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        chat(live, messages=[{"role": "user", "content": "x" * (1 << 20)}])
    assert caught.value.status_code == 413


def test_the_sdk_raises_on_a_route_that_is_not_there(live: Live) -> None:
    with pytest.raises(openai.NotFoundError):
        live.sdk().completions.create(model=MODEL, prompt="Hello")


def _quiet(live: Live) -> bool:
    return live.gauges() == (0, 0, 0)


def test_a_client_that_leaves_in_the_middle_stops_the_engine_and_frees_its_blocks(live: Live) -> None:
    connection = live.ask()
    connection.getresponse().read(600)
    assert live.gauges()[0] == 1
    connection.close()
    until(lambda: _quiet(live), GONE_WITHIN_S)


def test_a_client_that_leaves_the_queue_is_never_computed_for(live: Live) -> None:
    running = [live.ask() for _ in range(2)]
    until(lambda: live.gauges()[0] == 2)
    queued = live.ask()
    until(lambda: live.gauges()[1] == 1)
    queued.close()
    until(lambda: live.gauges()[:2] == (2, 0), GONE_WITHIN_S)
    for connection in running:
        connection.close()
    until(lambda: _quiet(live), GONE_WITHIN_S)


def test_a_client_that_leaves_during_the_prefill_stops_it(live: Live) -> None:
    connection = live.ask("word " * 700)  # some three seconds before the first token
    until(lambda: live.gauges()[0] == 1)
    connection.close()
    until(lambda: _quiet(live), GONE_WITHIN_S + 700 * PROMPT_TOKEN_S)


def test_a_client_that_leaves_with_the_last_token_leaves_nothing_behind(live: Live) -> None:
    connection = live.ask(tokens=4)
    reply = connection.getresponse()
    while b'"finish_reason": "length"' not in (line := reply.readline()) and b'"finish_reason":"length"' not in line:
        assert line
    connection.close()
    until(lambda: _quiet(live), GONE_WITHIN_S)


def test_the_sdk_raises_when_the_engine_dies_in_the_middle_of_a_stream() -> None:
    with serving() as live:
        stream = chat(live, stream=True, max_tokens=LONG, extra_body={"ignore_eos": True})
        seen = []
        with pytest.raises(openai.APIError, match="EngineCore"):  # noqa: PT012  # the error comes while reading
            for chunk in stream:
                seen.append(chunk)
                if len(seen) == 5:
                    live.kill_core()
        assert 5 <= len(seen) < LONG


def test_an_answer_without_stream_that_dies_is_replaced_and_says_so() -> None:
    with serving() as live, contextlib.closing(live.ask()) as witness:
        witness.getresponse().read(600)
        asked = http.client.HTTPConnection(live.gateway, timeout=20.0)
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": LONG, "ignore_eos": True}
        asked.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        until(lambda: live.gauges()[0] == 2)
        live.kill_core()
        reply = asked.getresponse()
        choice = json.loads(reply.read())["choices"][0]
        asked.close()
        assert (reply.status, reply.headers["x-degraded"], choice["finish_reason"]) == (200, "canned", "stop")
