"""Who may share an answer, and which kept answer fits."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from target_stack.embedder import hashing
from target_stack.embedder.embedding import AUTO, load
from target_stack.fixtures import fixtures_dir, read_lines
from target_stack.gateway.cache.index import Entry, VectorIndex, unit
from target_stack.gateway.policies.caching import (
    CacheSettings,
    identity_of,
    is_keepable,
    lifetime_s,
    telling_words,
    use_of,
)


@pytest.mark.parametrize(
    ("fields", "header", "use"),
    [
        ({}, None, "alone"),
        ({}, "prefer", "cache"),
        ({"temperature": 0}, None, "flight"),
        ({"temperature": 0.0}, "prefer", "cache"),
        ({"temperature": 0}, "off", "alone"),
        ({"temperature": 0.7}, "prefer", "alone"),
        ({"n": 2}, "prefer", "alone"),
        ({"n": 1}, "prefer", "cache"),
        ({"tools": [{}]}, "prefer", "alone"),
        ({"seed": 1, "temperature": 0}, None, "alone"),
    ],
)
def test_only_answers_that_leave_nothing_to_chance_are_shared_and_only_kept_when_asked(
    fields: dict[str, Any], header: str | None, use: str
) -> None:
    assert use_of(fields, header) == use


def ask(text: Any = "How long is the warranty?", **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}], **more}


CHAT = ("chat", "r1")
SAME = identity_of(CHAT, ask(), {})


@pytest.mark.parametrize(
    "fields",
    [
        ask("  How long\tis the \r\n warranty? "),
        ask(stream=True, stream_options={"include_usage": True}),
        ask(model="brownout-chat", metadata={"job": "7"}),
        ask(temperature=None),
    ],
    ids=str,
)
def test_blanks_and_ways_of_delivery_make_no_other_request(fields: dict[str, Any]) -> None:
    assert identity_of(CHAT, fields, {}) == SAME


@pytest.mark.parametrize(
    ("way", "fields", "headers"),
    [
        (("rag", "r1"), ask(), {}),
        (("chat", "r2"), ask(), {}),
        (CHAT, ask("How long is the Warranty?"), {}),
        (CHAT, ask(max_tokens=5), {}),
        (CHAT, ask(stop=["."]), {}),
        (CHAT, ask(user="anna"), {}),
        (CHAT, ask(safety_identifier="anna"), {}),
        (CHAT, ask(), {"authorization": "Bearer a"}),
        (CHAT, ask(), {"x-tenant": "a"}),
        (CHAT, {"messages": ask()["messages"][1:]}, {}),
    ],
    ids=str,
)
def test_all_that_shapes_the_answer_or_names_a_user_makes_another_request(
    way: tuple[str, ...], fields: dict[str, Any], headers: dict[str, str]
) -> None:
    assert identity_of(way, fields, headers).key != SAME.key


@pytest.mark.parametrize("content", [[{"type": "image_url", "image_url": {"url": "x"}}], None], ids=str)
def test_what_is_no_plain_question_has_no_identity(content: Any) -> None:
    assert identity_of(CHAT, ask(content), {}) is None
    assert identity_of(CHAT, {"messages": [{"role": "assistant", "content": "Hello"}]}, {}) is None


def test_answers_kept_together_do_not_expire_together() -> None:
    dice = random.Random(7)
    lives = [lifetime_s(CacheSettings(ttl_s=100.0, ttl_jitter=0.2), dice) for _ in range(500)]
    assert 80.0 < min(lives) < 82.0
    assert 98.0 < max(lives) <= 100.0
    assert {lifetime_s(CacheSettings(ttl_s=100.0, ttl_jitter=0.0), dice) for _ in range(5)} == {100.0}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("How long is the warranty?", "The warranty is how long?", True),
        ("Where do orders wait?", "How long do orders wait?", False),
        ("Is it waterproof?", "Isn't it waterproof?", False),
        ("Does it fit without adapters?", "Does it fit with adapters?", False),
        ("Is 2.5 kg too heavy?", "Is 25 kg too heavy?", False),
        ("What don’t I get?", "What don't I get?", True),
    ],
)
def test_question_words_numbers_and_negations_tell_questions_apart(one: str, other: str, alike: bool) -> None:
    assert (telling_words(one) == telling_words(other)) is alike


@pytest.mark.parametrize("model", [hashing.NAME, AUTO])
def test_no_two_standard_questions_with_different_answers_stand_in_for_each_other(model: str) -> None:
    questions = list(read_lines(fixtures_dir() / "prompts" / "product-questions.jsonl"))
    texts = [record["question"] for record in questions]
    entries = [
        Entry("scope", model, unit(found.vector), telling_words(text))
        for text, found in zip(texts, load(model).embed(texts), strict=True)
    ]
    for (kept, kept_entry), (asked, entry) in itertools.permutations(zip(questions, entries, strict=True), 2):
        if kept["expect"] != asked["expect"]:
            index = VectorIndex(1)
            index.add("kept", kept_entry)
            near = index.nearest(entry, CacheSettings().similar_in_need)
            assert near is None, (near, kept["question"], asked["question"])


@pytest.mark.parametrize(
    ("content", "finish", "keep"),
    [("Yes.", "stop", True), ("Yes", "length", False), (" ", "stop", False), (None, "tool_calls", False)],
)
def test_only_an_answer_that_said_something_and_came_to_its_own_end_is_worth_keeping(
    content: str | None, finish: str, keep: bool
) -> None:
    assert is_keepable({"choices": [{"message": {"content": content}, "finish_reason": finish}]}) is keep
    assert not is_keepable({"choices": []})
