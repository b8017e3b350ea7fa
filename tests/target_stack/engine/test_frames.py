"""Which frames a stream has."""

from __future__ import annotations

import json

from target_stack.engine import replies, requests
from target_stack.engine.config import EngineConfig
from target_stack.engine.delta import Delta
from target_stack.engine.frames import FrameWriter

CONFIG = EngineConfig(name="e", listen="127.0.0.1:1", model="tiny")
HEAD = replies.Head("chatcmpl-1", 1, "tiny", "f")


def writer(interval: int = 1, **body) -> FrameWriter:
    call = requests.chat_call({"messages": [{"role": "user", "content": "hi"}], "stream": True, **body}, CONFIG)
    return FrameWriter(call, replies.Chat(HEAD), HEAD, interval)


def contents(data: bytes) -> list[str]:
    frames = [json.loads(frame[6:]) for frame in data.decode().split("\n\n") if frame]
    return [frame["choices"][0]["delta"].get("content") for frame in frames]


def tokens(*pieces: str) -> list[Delta]:
    *others, last = pieces
    return [*(Delta(0, piece, None, None) for piece in others), Delta(0, last, "length", None)]


def test_the_role_frame_comes_with_the_first_token_and_only_once():
    subject = writer()
    assert ["", "a"] == contents(subject.frames([Delta(0, "a", None, None)]))
    assert ["b"] == contents(subject.frames([Delta(0, "b", None, None)]))


def test_an_interval_sends_the_first_token_at_once_then_groups_and_the_rest_with_the_end():
    sent = [contents(writer(3).frames(tokens(*"abcdefgh")))]
    assert sent == [["", "a", "bcd", "efg", "h"]]


def test_a_token_that_waits_makes_no_bytes_at_all():
    subject = writer(3)
    subject.frames([Delta(0, "a", None, None)])
    assert subject.frames([Delta(0, "b", None, None)]) == b""


def test_usage_is_counted_in_tokens_not_in_frames():
    subject = writer(4, stream_options={"include_usage": True})
    subject.frames(tokens(*"abcdef"))
    assert json.loads(subject.ending()[6:])["usage"]["completion_tokens"] == 6


def test_a_server_told_to_always_reports_usage():
    forced = EngineConfig(name="e", listen="127.0.0.1:1", model="tiny", enable_force_include_usage=True)
    call = requests.chat_call({"messages": [{"role": "user", "content": "hi"}], "stream": True}, forced)
    assert (call.include_usage, call.continuous_usage) == (True, True)
