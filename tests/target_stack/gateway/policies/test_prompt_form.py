"""Prompts that mean the same begin alike, and nothing of what anybody wrote is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.engine.config import EngineConfig
from target_stack.engine.core import Core
from target_stack.engine.requests import render_chat
from target_stack.fixtures import fixtures_dir, read_documents, read_lines
from target_stack.gateway.policies.prompt_form import PromptSettings, in_form, in_order
from target_stack.gateway.requests import ChatRequest, chat_request

STEADY, AS_IT_CAME = PromptSettings(), PromptSettings(kind="as_it_came")
TEXT = st.text(st.sampled_from("ab \t\r\n é2026-11-3012:05"), max_size=60)
MESSAGES = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["system", "developer", "user", "assistant"]),
        TEXT,
    ),
    max_size=5,
)


def system_prompt(text: str) -> str:
    (message,) = in_form(STEADY, [{"role": "system", "content": text}])
    return message["content"]


@pytest.mark.parametrize(
    "line",
    [
        "Today is 2026-11-30.",
        "Now: 12:05:17",
        "Session ID: 7",
        "trace-id=abc",
        "You are talking to 123e4567-e89b-12d3-a456-426614174000.",
    ],
)
def test_a_line_that_changes_with_every_request_goes_behind_those_that_do_not(line: str) -> None:
    assert f"Be kind.\nBe short.\n{line}" == system_prompt(f"Be kind.\n{line}\nBe short.")


def test_blanks_and_line_ends_that_no_reader_sees_do_not_tell_prompts_apart() -> None:
    assert system_prompt("Be kind.\nBe short.") == system_prompt("Be kind.  \r\nBe short.\t")


@given(MESSAGES)
def test_only_system_prompts_change_and_they_keep_every_word(messages: list[dict[str, str]]) -> None:
    formed = in_form(STEADY, messages)
    for before, after in zip(messages, formed, strict=True):
        if before["role"] in ("user", "assistant"):
            assert before == after
        assert sorted(before["content"].split()) == sorted(after["content"].split())


@given(MESSAGES)
def test_once_is_enough(messages: list[dict[str, str]]) -> None:
    once = in_form(STEADY, messages)
    assert once == in_form(STEADY, once)


@given(MESSAGES)
def test_the_other_kind_changes_nothing(messages: list[dict[str, str]]) -> None:
    assert messages == in_form(AS_IT_CAME, messages)


@given(st.permutations([("a", "1"), ("b", "2"), ("c", "3")]))
def test_documents_come_in_one_order_whatever_their_rank(ranked: list[tuple[str, str]]) -> None:
    assert [("a", "1"), ("b", "2"), ("c", "3")] == in_order(STEADY, ranked)
    assert ranked == in_order(AS_IT_CAME, ranked)


def share_found(prompts: Iterable[str]) -> float:
    """Share of the tokens of these prompts, asked one after the other, that an engine finds in its prefix cache."""
    core = Core(EngineConfig(name="e", listen="127.0.0.1:1"))
    report: Mapping[str, Any] = {}
    for number, prompt in enumerate(prompts):
        sampling = {"max_tokens": 1, "min_tokens": 0, "ignore_eos": True, "stop": [], "draw": 0}
        add = {"op": "add", "id": f"{number}", "model": "", "prompt": prompt, "sampling": sampling, "priority": 0}
        core.handle({**add, "seed": None}, float(number))
        while begun := core.begin(float(number)):
            report = core.finish(begun[0], float(number))
    return report["hits"] / report["queries"]


def asked(settings: PromptSettings, *messages: tuple[str, str]) -> ChatRequest:
    said = [{"role": role, "content": content} for role, content in messages]
    return chat_request(json.dumps({"messages": said}).encode(), "m").in_form(settings)


def over_documents(settings: PromptSettings) -> Iterator[str]:
    """200 questions over 20 sets of three documents, which retrieval ranks anew for every question."""
    dice, documents = random.Random(1), [(one.id, one.body) for one in read_documents()]
    questions = [one["question"] for one in read_lines(fixtures_dir() / "prompts" / "product-questions.jsonl")]
    sets = [dice.sample(documents, 3) for _ in range(20)]
    for _ in range(200):
        ranked = dice.sample(dice.choice(sets), 3)
        ask = asked(settings, ("user", dice.choice(questions))).with_context(in_order(settings, ranked))
        yield render_chat(ask.fields["messages"])


def under_a_clock(settings: PromptSettings) -> Iterator[str]:
    """200 questions under one long system prompt that begins with the time."""
    rules = "\n".join(f"Rule {number}: be kind to everybody, and short." for number in range(30))
    for number in range(200):
        clock = f"It is 2026-11-30 12:{number % 60:02}:{number % 59:02}."
        ask = asked(settings, ("system", f"{clock}\n{rules}"), ("user", f"Question {number}?"))
        yield render_chat(ask.fields["messages"])


@pytest.mark.parametrize("traffic", [over_documents, under_a_clock])
def test_an_engine_computes_a_third_less_of_its_prompts_or_better(
    traffic: Callable[[PromptSettings], Iterator[str]],
) -> None:
    came, formed = share_found(traffic(AS_IT_CAME)), share_found(traffic(STEADY))
    assert 1 - formed < 2 / 3 * (1 - came), (came, formed)
