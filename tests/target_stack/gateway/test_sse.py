"""Frames come out the same wherever the network cuts them, and only a whole answer counts as whole."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.sse import Frame, SseParser, StreamJudge, TrustingJudge


def chunk(content: str | None = None, finish: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish}]}


def frame(value: dict[str, Any]) -> Frame:
    return Frame(b"", value)


STREAM = b": keep-alive\n\n" + b"".join(
    b"data: " + json.dumps(one).encode() + b"\n\n"
    for one in (chunk(""), chunk("链路"), chunk("\n\n"), chunk(None, "stop"))
)
WHOLE = STREAM + b"data: [DONE]\n\n"


@given(st.lists(st.integers(0, len(WHOLE)), max_size=20))
def test_cuts_of_the_network_change_nothing(cuts: list[int]) -> None:
    parser, places = SseParser(), [0, *sorted(cuts), len(WHOLE)]
    frames = [one for a, b in pairwise(places) for one in parser.feed(WHOLE[a:b])]
    assert frames == list(SseParser().feed(WHOLE))
    assert b"".join(one.raw for one in frames) == WHOLE


def test_carriage_returns_are_understood() -> None:
    assert [one.done for one in SseParser().feed(b"data: [DONE]\r\n\r\n")] == [True]


@pytest.mark.parametrize("raw", [b"data: {oops\n\n", b"data: [1]\n\n", b"<html></html>\n\n", b"x" * (1 << 21)])
def test_what_is_no_frame_is_malformed(raw: bytes) -> None:
    with pytest.raises(EngineFailure) as caught:
        list(SseParser().feed(raw))
    assert caught.value.kind == "malformed"


def test_the_role_chunk_is_no_progress_and_a_token_is() -> None:
    judge = StreamJudge()
    assert [judge.see(frame(chunk(one))) for one in ("", "Hi")] == [False, True]


def test_done_without_finish_reason_is_truncated() -> None:
    judge = StreamJudge()
    judge.see(frame(chunk("Hi")))
    with pytest.raises(EngineFailure) as caught:
        judge.ended(done=True)
    assert caught.value.kind == "truncated"


def test_every_choice_needs_its_finish_reason() -> None:
    judge = StreamJudge(choices=2)
    judge.see(frame(chunk("a", "stop", index=0)))
    assert not judge.finished
    judge.see(frame(chunk("b", "length", index=1)))
    assert judge.finished
    judge.ended(done=True)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"error": {"message": "died", "code": 500}}, "error_frame"),
        ({"error": "scaling"}, "error_frame"),
        (chunk("", "abort"), "aborted"),
        ({"id": 1}, "malformed"),
        ({"choices": [7]}, "malformed"),
    ],
)
def test_a_frame_that_means_failure_is_one(value: dict[str, Any], kind: str) -> None:
    with pytest.raises(EngineFailure) as caught:
        StreamJudge().see(frame(value))
    assert caught.value.kind == kind


def test_the_usage_chunk_without_choices_is_fine() -> None:
    assert not StreamJudge().see(frame({"choices": [], "usage": {"total_tokens": 1}}))


def test_the_trusting_judge_passes_over_errors_and_takes_done_for_whole() -> None:
    judge = TrustingJudge()
    error = Frame(b"", {"error": {"message": "EngineCore died", "code": 500}})
    assert (judge.see(error), judge.passes(error)) == (False, False)
    judge.ended(done=True)
    assert judge.finished
