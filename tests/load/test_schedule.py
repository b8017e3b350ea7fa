"""A load laid out before the run."""

from __future__ import annotations

import json
import re

import pytest

from chaos.adapters.entropy import SeededEntropy
from chaos.load.prompts import Prompt, PromptError, lengthened
from chaos.load.schedule import PlannedRequest, http_request, plan_load
from chaos.spec.model import Load
from chaos.units import Rate

QUESTIONS = tuple(Prompt(f"q{n}", question=f"Question {n}?") for n in range(20))
CHAT = {"messages", "max_tokens", "stream", "stream_options"}
TASKS = (Prompt("a", question="The kettle of B-1003 leaks.", task="complaint"),)
TOOLS = (Prompt("t", tool="order_status", arguments={"order": "B-1"}),)


def plan(seed=7, prompts=QUESTIONS, **settings):
    load = Load(**{"name": "chat", "route": "rag", "rate": Rate(20)} | settings)
    return plan_load(load, prompts, seed, SeededEntropy(seed), 10.0)


def test_the_same_seed_gives_the_same_plan_and_another_seed_another():
    assert plan(7) == plan(7)
    assert plan(7).requests != plan(8).requests


def test_a_load_of_another_name_has_its_own_dice():
    assert [r.at_s for r in plan().requests] != [r.at_s for r in plan(name="other").requests]


def test_requests_are_numbered_in_order_of_time():
    requests = plan().requests
    assert [r.number for r in requests] == list(range(len(requests)))
    assert [r.at_s for r in requests] == sorted(r.at_s for r in requests)


def test_every_request_has_a_trace_of_its_own():
    requests = plan().requests
    assert len({r.trace_id for r in requests}) == len(requests)


def test_a_resend_keeps_the_trace_and_changes_span_and_request_id():
    load, request = plan().load, plan().requests[0]
    first, second = (http_request(load, request, attempt).headers for attempt in (1, 2))
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", first["traceparent"])
    assert first["traceparent"][:36] == second["traceparent"][:36]
    assert first["traceparent"] != second["traceparent"]
    assert first["x-request-id"] != second["x-request-id"]


def test_a_tool_call_keeps_its_key_on_every_resend_and_has_another_in_another_run():
    made = plan(route="tools", prompts=TOOLS)
    first, other = made.requests[:2]
    keys = [
        http_request(made.load, request, attempt, run).headers["idempotency-key"]
        for request, attempt, run in [(first, 1, "r1"), (first, 2, "r1"), (other, 1, "r1"), (first, 1, "r2")]
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_only_tool_calls_carry_a_key():
    made = plan(route="chat")
    assert "idempotency-key" not in http_request(made.load, made.requests[0], 1).headers


@pytest.mark.parametrize(
    ("route", "prompts", "path", "keys"),
    [
        ("chat", QUESTIONS, "/v1/chat/completions", CHAT),
        ("rag", QUESTIONS, "/v1/rag", CHAT),
        ("embeddings", QUESTIONS, "/v1/embeddings", {"input"}),
        ("agent", TASKS, "/v1/agent", {"kind", "goal"}),
        ("tools", TOOLS, "/v1/tools/order_status", {"order"}),
        ("ingest", QUESTIONS, "/v1/documents", {"text"}),
    ],
)
def test_each_route_has_its_path_and_body(route, prompts, path, keys):
    made = plan(route=route, prompts=prompts)
    request = http_request(made.load, made.requests[0], 1)
    assert (request.method, request.path) == ("POST", path)
    assert set(json.loads(request.body)) == keys


@pytest.mark.parametrize(("model", "named"), [(None, False), ("tiny", True)])
@pytest.mark.parametrize("route", ["chat", "rag", "embeddings"])
def test_a_model_is_named_only_when_the_load_names_one(route, model, named):
    made = plan(route=route, model=model)
    assert json.loads(http_request(made.load, made.requests[0], 1).body).get("model") == (model if named else None)


def test_no_stream_means_no_stream_options():
    made = plan(route="chat", stream=False)
    assert json.loads(http_request(made.load, made.requests[0], 1).body)["stream"] is False
    assert "stream_options" not in json.loads(http_request(made.load, made.requests[0], 1).body)


@pytest.mark.parametrize(("route", "prompts"), [("rag", TOOLS), ("tools", QUESTIONS), ("agent", QUESTIONS)])
def test_prompts_that_do_not_fit_the_route_are_refused(route, prompts):
    with pytest.raises(PromptError, match=route):
        plan(route=route, prompts=prompts)


def test_a_task_keeps_its_key_over_resends_so_that_it_is_one_task():
    made = plan(route="agent", prompts=TASKS)
    first, second = (http_request(made.load, made.requests[0], attempt, "r1").headers for attempt in (1, 2))
    assert first["idempotency-key"] == second["idempotency-key"] == f"{made.requests[0].trace_id}-r1"
    assert "idempotency-key" not in http_request(plan().load, plan().requests[0], 1).headers


def test_a_document_carries_its_marker_and_keeps_its_key_over_resends():
    made = plan(route="ingest")
    first, second = (http_request(made.load, made.requests[0], attempt, "r1") for attempt in (1, 2))
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert json.loads(first.body)["text"].startswith(f"Reference: m-{made.requests[0].trace_id[:12]}\n")


@pytest.mark.parametrize("cache", [True, False])
def test_kept_answers_are_accepted_only_when_the_load_says_so(cache):
    made = plan(route="chat", cache=cache)
    assert http_request(made.load, made.requests[0], 1).headers.get("x-cache") == ("prefer" if cache else None)


@pytest.mark.parametrize(("priority", "named"), [("interactive", None), ("batch", "batch")])
def test_batch_work_says_so_and_people_need_not(priority, named):
    made = plan(route="chat", priority=priority)
    assert http_request(made.load, made.requests[0], 1).headers.get("x-priority") == named


def test_a_short_prompt_is_lengthened_to_so_many_words_and_ends_with_the_question():
    load = Load(name="chat", route="chat", rate=Rate(1.0), prompt_words=200)
    request = PlannedRequest(0, 0.0, Prompt("p", question="What is the answer?"), "0" * 32)
    (message,) = json.loads(http_request(load, request, 1).body)["messages"]
    assert len(message["content"].split()) == 200
    assert message["content"].endswith("\n\nWhat is the answer?")


@pytest.mark.parametrize("words", [None, 1, 4])
def test_a_prompt_that_is_long_enough_stays_as_it_is(words):
    assert lengthened("What is the answer?", words, "d") == "What is the answer?"


def test_no_two_long_prompts_begin_alike_but_those_of_a_resend():
    load = Load(name="chat", route="chat", rate=Rate(1.0), prompt_words=200)
    asked = [PlannedRequest(n, 0.0, Prompt("p", question="What is the answer?"), f"{n}" * 32) for n in (1, 2)]
    sent = [(each, attempt, run) for each in asked for attempt in (1, 2) for run in ("1.0", "2.0")]
    bodies = [json.loads(http_request(load, *each).body)["messages"][0]["content"] for each in sent]
    assert 4 == len({body.split()[0] for body in bodies})
    assert [bodies[0], bodies[1]] == [bodies[2], bodies[3]]


def test_a_marked_load_gives_each_request_a_marker_that_is_the_beginning_of_its_trace():
    made = plan(route="chat", marked=True)
    asked = [json.loads(http_request(made.load, each, 1).body)["messages"][0]["content"] for each in made.requests[:2]]
    assert [text.partition("\n")[0] for text in asked] == [
        f"Reference: m-{each.trace_id[:12]}" for each in made.requests[:2]
    ]
    assert asked[0].partition("\n")[2] == made.requests[0].prompt.question
