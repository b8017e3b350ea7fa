"""Byte for byte what a real vLLM 0.32 sent, where ids, times and words are given."""

from __future__ import annotations

import json

import pytest

from target_stack.engine import errors, replies, requests
from target_stack.engine.config import EngineConfig
from target_stack.engine.http_metrics import HttpMetrics, runtime_families
from target_stack.engine.metrics import Metrics

CONFIG = EngineConfig(name="e", listen="127.0.0.1:1", model="tiny", max_model_len=1024)
CREATED = 1796020427
FINGERPRINT = "vllm-0.32.0-396b8d8c"
CHAT = {"messages": [{"role": "user", "content": "hi"}]}


def error_text(refusal: errors.ApiError) -> str:
    return replies.json_bytes(refusal.body).decode()


def test_a_chat_stream_is_the_captured_one(capture):
    dialect = replies.Chat(replies.Head("chatcmpl-abc-1", CREATED, "tiny", FINGERPRINT))
    words = [
        json.loads(line[6:])["choices"][0]["delta"]["content"] for line in capture("chat_stream.txt").split("\n\n")[1:5]
    ]
    sent = [
        dialect.first(1),
        *(dialect.token(0, word) for word in words[:-1]),
        dialect.last(0, words[-1], "length", None),
        dialect.usage(19, 4),
        replies.DONE,
    ]
    assert b"".join(sent).decode() == capture("chat_stream.txt")


def test_a_whole_chat_is_the_captured_one(capture):
    body = capture("chat.txt")
    words = json.loads(body)["choices"][0]["message"]["content"]
    dialect = replies.Chat(replies.Head("chatcmpl-937132ea7d6b12bf", CREATED, "tiny", FINGERPRINT))
    assert dialect.whole([replies.Choice(words, "length", None)], 19, 4).decode() == body


def test_the_model_list_is_the_captured_one(capture):
    listed = replies.models("tiny", CREATED, 1024, "a08aeea0f6add116")
    assert replies.json_bytes(listed).decode() == capture("models.json")


def test_broken_json_is_refused_as_captured(capture):
    with pytest.raises(errors.ApiError) as refused:
        requests.parse_json(b"{bad")
    assert (refused.value.code, error_text(refused.value)) == (400, capture("err_json.txt"))


@pytest.mark.parametrize(
    ("name", "code", "body"),
    [
        ("err_missing.txt", 400, {"model": "tiny"}),
        ("err_model.txt", 404, {"model": "nope", **CHAT}),
        ("err_len.txt", 400, {"model": "tiny", "max_tokens": 5000, **CHAT}),
    ],
)
def test_a_bad_request_is_refused_as_captured(capture, name, code, body):
    with pytest.raises(errors.ApiError) as refused:
        requests.chat_call(body, CONFIG)
    assert (refused.value.code, error_text(refused.value)) == (code, capture(name))


def test_a_full_queue_is_refused_as_captured(capture):
    assert error_text(errors.queue_full()) == capture("queue_full_503.json")


def test_a_dead_core_fails_a_whole_answer_as_captured(capture):
    assert error_text(errors.engine_dead()) == capture("nonstream_engine_killed.json")


def test_a_dead_core_ends_a_stream_as_captured(capture):
    tail = replies.error_frame(errors.engine_dead().body) + replies.DONE
    assert capture("stream_tail_engine_killed.txt").endswith("\n\n" + tail.decode())


def shape(text: str) -> set[str]:
    """Every type line and every series without its number; of labels that only describe the machine, just the names."""
    told = {
        "le",
        "reason",
        "source",
        "finished_reason",
        "sleep_state",
        "engine",
        "model_name",
        "handler",
        "method",
        "status",
        "generation",
    }
    found = set()
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            found.add(line)
        elif not line.startswith("#"):
            name, _, labels = line.rpartition(" ")[0].partition("{")
            pairs = [pair.split("=", 1) for pair in labels.rstrip("}").split(",") if pair]
            found.add(name + " " + " ".join(f"{key}={value if key in told else ''}" for key, value in pairs))
    return found


def test_a_scrape_has_exactly_the_captured_names_types_labels_and_buckets(capture):
    http = HttpMetrics()
    for handler, method, status in (
        ("/v1/models", "GET", 200),
        ("/v1/chat/completions", "POST", 200),
        ("/v1/completions", "POST", 404),
        ("/v1/chat/completions", "POST", 400),
    ):
        http.record(handler, method, status, request_bytes=0, response_bytes=0, seconds=0.0)
    families = (*runtime_families(), *Metrics(CONFIG).families, *http.families)
    ours = shape("\n".join(line for family in families for line in family.lines()))
    assert ours ^ shape(capture("metrics.txt")) == set()
