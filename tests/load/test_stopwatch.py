"""The outcome of one attempt, for everything that a socket can say."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.load.prompts import Prompt
from chaos.load.stopwatch import Question, Stopwatch
from chaos.spec.model import Load, Slo
from chaos.units import Duration, Rate

TRACE = "0af7651916cd43dd8448eb211c80319c"
SSE = {"Content-Type": "text/event-stream; charset=utf-8"}
JSON = {"Content-Type": "application/json"}
ERROR = (
    b'data: {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}\n\n'
)
DONE = b"data: [DONE]\n\n"


def frame(content=None, finish=None, index=0, **delta):
    said = {"content": content, **delta} if content is not None else delta
    return (
        b"data: "
        + json.dumps({"choices": [{"index": index, "delta": said, "finish_reason": finish}]}).encode()
        + b"\n\n"
    )


def calls(*pieces):
    """A tool call whose arguments come in these pieces."""
    parts = [frame(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": piece}}]) for piece in pieces]
    return b"".join(parts) + frame(finish="tool_calls")


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":40}}\n\n'
ROLE = frame("", role="assistant")
STREAM = ROLE + frame("It is 45") + frame(" days") + frame(".", finish="stop") + USAGE + DONE


def watch(body=STREAM, *, status=200, headers=SSE, end="ended", why="", **question):
    watched = Stopwatch(Question(intended_s=1.0, **question), sent_s=1.001)
    if status:
        watched.reply(1.1, status, headers)
    if body:
        watched.chunk(1.2, body)
    if end == "ended":
        watched.ended(1.3)
    elif end == "timeout":
        watched.timed_out(1.3)
    elif end == "ours":
        watched.given_up(1.3, why)
    else:
        watched.broken(1.3, why or end)
    return watched


def test_a_whole_stream_is_good():
    assert watch().outcome() == ("good", "")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ROLE + frame("a") + ERROR + DONE, ("failed", "error_frame")),  # real vLLM with a dead engine: 200 and [DONE]
        (STREAM.replace(DONE, ERROR), ("failed", "error_frame")),
        (ROLE + frame("a") + DONE, ("failed", "no_finish_reason")),
        (ROLE + frame("a"), ("failed", "no_finish_reason")),
        (DONE, ("failed", "no_finish_reason")),
        (b"", ("failed", "no_finish_reason")),
        (ROLE + frame("a", finish="abort") + DONE, ("failed", "finish_abort")),
        (ROLE + frame("", finish="stop") + DONE, ("failed", "empty")),
        (ROLE + frame(" \n", finish="stop") + DONE, ("failed", "empty")),
        (b"data: {broken\n\n" + STREAM, ("failed", "malformed")),
        (frame("a", finish="stop") + frame("b", index=1) + DONE, ("failed", "no_finish_reason")),
        (frame("a", finish="stop"), ("indeterminate", "no_done")),
        (frame("a", finish="length") + DONE, ("good", "")),
        (frame(None, finish="tool_calls", tool_calls=[{"id": "1"}]) + DONE, ("good", "")),
        (calls('{"order":', ' "A-17"}') + DONE, ("good", "")),
        (calls('{"order":', "") + DONE, ("failed", "broken_tool_call")),
        (frame("a", finish="stop") + frame("b", finish="length", index=1) + DONE, ("good", "")),
        (STREAM + ERROR, ("good", "")),  # what follows [DONE] belongs to nobody
    ],
)
def test_a_stream_is_judged_by_what_it_says_not_by_its_status(body, expected):
    assert expected == watch(body).outcome()


@pytest.mark.parametrize(
    ("end", "body", "expected"),
    [
        ("connect_refused", b"", ("failed", "connect_refused")),
        ("reset", b"", ("failed", "reset")),
        ("cut", ROLE + frame("a"), ("failed", "cut")),
        ("cut", ROLE + ERROR, ("failed", "error_frame")),
        ("cut", frame("a", finish="stop"), ("indeterminate", "cut_after_finish")),
        ("cut", STREAM, ("good", "")),
        ("timeout", b"", ("abandoned", "timeout")),
        ("timeout", ROLE + frame("a"), ("abandoned", "timeout")),
        ("timeout", frame("a", finish="stop"), ("indeterminate", "timeout_after_finish")),
        ("timeout", STREAM, ("good", "")),  # the socket stays open after [DONE]
    ],
)
def test_an_answer_that_breaks_off_failed_unless_it_was_complete(end, body, expected):
    assert expected == watch(body, end=end, status=200 if body else 0).outcome()


@pytest.mark.parametrize("why", ["stopped", "harness_emfile"])
def test_trouble_of_our_own_is_indeterminate(why):
    assert watch(ROLE + frame("a"), end="ours", why=why).outcome() == ("indeterminate", why)
    assert watch(b"", status=0, end="ours", why=why).outcome() == ("indeterminate", why)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(503, "shed"), (429, "shed"), (500, "failed"), (502, "failed"), (404, "failed"), (400, "failed"), (302, "failed")],
)
def test_a_refusal_of_the_front_door_is_shed_and_other_errors_failed(status, expected):
    assert watch(b"{}", status=status, headers=JSON).outcome() == (expected, f"status_{status}")
    assert watch(b"", status=status, headers=JSON, end="cut").outcome() == (expected, f"status_{status}")


def test_retry_after_is_read_in_seconds():
    assert watch(b"{}", status=503, headers={"Retry-After": "2"}).ending.retry_after_s == 2.0
    assert (
        watch(b"{}", status=503, headers={"Retry-After": "Mon, 30 Nov 2026 06:36:17 GMT"}).ending.retry_after_s is None
    )


def test_an_answer_that_says_it_is_degraded_is_degraded():
    watched = watch(headers=SSE | {"X-Degraded": "no_retrieval", "X-Served-By": "engine-a"})
    assert watched.outcome() == ("degraded", "no_retrieval")
    assert (watched.degraded, watched.served_by) == ("no_retrieval", "engine-a")


def test_latency_bounds_count_from_the_intended_time():
    assert watch(ttft_s=0.21, e2e_s=0.21).outcome() == ("good", "")
    assert watch(ttft_s=0.19).outcome() == ("late", "slo_ttft")
    assert watch(e2e_s=0.19).outcome() == ("late", "slo_e2e")


def test_an_answer_too_late_is_late_also_when_degraded():
    assert watch(e2e_s=0.1, headers=SSE | {"x-degraded": "canned"}).outcome() == ("late", "slo_e2e")


def test_the_first_token_is_the_first_text_not_the_role():
    watched = Stopwatch(Question(intended_s=0.0), sent_s=0.0)
    watched.reply(0.1, 200, SSE)
    watched.chunk(0.2, ROLE)
    watched.chunk(0.5, frame("a"))
    watched.chunk(0.75, frame("b"))
    watched.chunk(1.0, frame("", finish="stop") + DONE)
    watched.ended(2.0)
    assert watched.first_token_s == 0.5
    assert watched.gaps_s == (0.25,)
    assert watched.end_s == 1.0


def test_tokens_are_what_the_server_counted_else_the_pieces():
    assert watch().tokens == 40
    assert watch(STREAM.replace(USAGE, b"")).tokens == 3


@pytest.mark.parametrize(
    ("expect", "expected"), [((), None), (("45 DAYS",), True), (("45 days", "It is"), True), (("45 days", "60"), False)]
)
def test_the_right_answer_holds_every_expected_text(expect, expected):
    assert watch(expect=expect).answer_ok is expected


def test_an_answer_that_is_no_stream_is_judged_the_same_way():
    choice = b'{"index":0,"message":{"content":"45 days"},"finish_reason":"stop"}'
    good = b'{"choices":[%b],"usage":{"completion_tokens":3}}' % choice
    watched = watch(good, headers=JSON, expect=("45 days",))
    assert watched.outcome() == ("good", "")
    assert (watched.first_token_s, watched.tokens, watched.answer_ok) == (1.3, 3, True)
    assert watch(good.replace(b"stop", b"abort"), headers=JSON).outcome() == ("failed", "finish_abort")
    assert watch(good.replace(b"45 days", b""), headers=JSON).outcome() == ("failed", "empty")
    assert watch(good[:-4], headers=JSON).outcome() == ("failed", "malformed")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"status":"shipped"}', ("good", "")),
        (b'{"data":[{"embedding":[0.1]}]}', ("good", "")),
        (b'{"data":[]}', ("failed", "empty")),
        (b"{}", ("failed", "empty")),
        (b'{"error":"no"}', ("failed", "error_frame")),
        (b"<html>", ("failed", "malformed")),
        (b"[]", ("failed", "malformed")),
    ],
)
def test_tools_and_embeddings_need_a_json_object_that_says_something(body, expected):
    assert expected == watch(body, headers=JSON, kind="json").outcome()


def test_an_answer_of_tools_cut_in_the_middle_failed():
    assert watch(b'{"sta', headers=JSON, kind="json", end="cut").outcome() == ("failed", "cut")


@pytest.mark.parametrize(
    ("task", "headers", "expected"),
    [
        ({"state": "done", "answer": "Your ticket is T-4."}, {}, ("good", "")),
        (
            {"state": "handed_over", "answer": "A person helps."},
            {"x-degraded": "handed_over"},
            ("degraded", "handed_over"),
        ),
        ({"state": "failed", "answer": "There is no such order."}, {}, ("failed", "state_failed")),
        ({"state": "running", "answer": ""}, {}, ("failed", "state_running")),
        ({"state": "done", "answer": " "}, {}, ("failed", "empty")),
        ({}, {}, ("failed", "state_")),
    ],
)
def test_a_task_is_served_when_it_was_done_or_a_person_took_it(task, headers, expected):
    body = json.dumps(task).encode()
    assert expected == watch(body, headers=JSON | headers, kind="task").outcome()


def test_a_question_carries_the_bounds_of_its_load():
    load = Load(name="c", route="tools", rate=Rate(1), slo=Slo(ttft=Duration(0.5), e2e=Duration(2)))
    prompt = Prompt("p", tool="t", expect=("x",))
    assert Question(3.0, "json", ("x",), 0.5, 2.0) == Question.of(load, 3.0, prompt, TRACE)
    assert Question.of(load, 3.0, replace(prompt, refused=True), TRACE).refused


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (403, ("good", "")),
        (401, ("good", "")),
        (200, ("failed", "not_refused")),
        (404, ("failed", "status_404")),
        (503, ("shed", "status_503")),
    ],
)
def test_where_a_refusal_is_the_right_answer_only_a_refusal_is_good(status, outcome):
    watched = Stopwatch(Question(0.0, "json", refused=True), sent_s=0.0)
    watched.reply(0.1, status, {})
    watched.chunk(0.1, b'{"refund": "R-1"}')
    watched.ended(0.2)
    assert watched.outcome() == outcome


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.integers(0, len(STREAM)))
def test_where_the_bytes_are_cut_changes_nothing(cuts, upto):
    body = STREAM[:upto]
    places = sorted({min(cut, upto) for cut in cuts} | {0, upto})
    watched = Stopwatch(Question(intended_s=1.0, expect=("45 days",)), sent_s=1.001)
    watched.reply(1.1, 200, SSE)
    for a, b in pairwise(places):
        watched.chunk(1.2, body[a:b])
    watched.broken(1.3, "cut")
    whole = watch(body, end="cut", expect=("45 days",))
    assert whole.outcome() == watched.outcome()
    assert (whole.tokens, whole.answer_ok, whole.end_s) == (watched.tokens, watched.answer_ok, watched.end_s)


@given(st.binary(max_size=300), st.sampled_from(["ended", "cut", "timeout"]), st.sampled_from([SSE, JSON]))
def test_no_bytes_whatsoever_break_the_stopwatch_or_count_as_success(noise, end, headers):
    assert watch(noise, end=end, headers=headers).outcome()[0] in ("failed", "abandoned")


def test_an_answer_tells_markers_of_others_and_keeps_quiet_about_its_own():
    watched = Stopwatch(Question(0.0, marker="m-0af7651916cd"), sent_s=0.0)
    watched.reply(0.1, 200, SSE)
    watched.chunk(0.2, frame("Reference: m-0af7651916cd.") + frame(" Reference: m-ffff651916cd.", "stop") + DONE)
    assert watched.leaked == "m-ffff651916cd"


def test_requests_without_markers_say_nothing_about_others():
    assert Stopwatch(Question(0.0), sent_s=0.0).leaked is None


def frame_of(**delta):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    "frames",
    [
        [frame_of(reasoning_content="m-ffff651916cd asked")],
        [frame_of(tool_calls=[{"index": 0, "function": {"arguments": '{"note": "m-ffff651916cd"}'}}])],
        [b'data: {"error": {"message": "prompt m-ffff651916cd is too long"}}\n\n'],
        [frame_of(content="see m-ffff65"), frame_of(content="1916cd, please")],
    ],
    ids=["reasoning", "arguments of a tool", "an error frame", "across two frames"],
)
def test_a_marker_is_found_in_whatever_frame_it_stands(frames):
    watched = Stopwatch(Question(0.0, marker="m-0af7651916cd"), sent_s=0.0)
    watched.reply(0.1, 200, {"content-type": "text/event-stream"})
    for piece in frames:
        watched.chunk(0.2, piece)
    watched.broken(0.3, "cut")
    assert watched.leaked == "m-ffff651916cd"


def test_a_marker_is_found_in_a_kept_answer_and_in_a_refusal():
    for status in (200, 500):
        watched = Stopwatch(Question(0.0, marker="m-0af7651916cd"), sent_s=0.0)
        watched.reply(0.1, status, {"content-type": "application/json", "x-served-by": "cache"})
        watched.chunk(0.2, b'{"choices": [{"index": 0, "message": {"content": "m-ffff651916cd"}}]}')
        watched.ended(0.3)
        assert watched.leaked == "m-ffff651916cd"


def test_an_answer_is_right_when_it_is_the_expected_json_too():
    for status, right in (("shipped", True), ("packed", False)):
        question = Question(0.0, kind="json", expect=("B-1001",), expect_json={"status": "shipped"})
        watched = Stopwatch(question, sent_s=0.0)
        watched.reply(0.1, 200, {"content-type": "application/json"})
        watched.chunk(0.2, json.dumps({"order": "B-1001", "status": status, "note": "shipped"}).encode())
        watched.ended(0.3)
        assert watched.answer_ok is right
