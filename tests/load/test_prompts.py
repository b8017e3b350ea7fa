"""Prompt sets."""

from __future__ import annotations

import pytest

from chaos.load.prompts import Prompt, PromptError, load_prompts, parse_prompts, prompt_sets, prompts_dirs


def test_a_question_and_a_tool_call_are_both_prompts():
    text = (
        '{"id": "q1", "question": "How long?", "expect": ["45 days"], "document": "returns"}\n\n'
        '{"id": "t1", "tool": "order_status", "arguments": {"order": "B-1"}, "expect": "shipped"}\n'
    )
    assert parse_prompts(text, "set") == (
        Prompt("q1", question="How long?", expect=("45 days",), document="returns"),
        Prompt("t1", tool="order_status", arguments={"order": "B-1"}, expect=("shipped",)),
    )


@pytest.mark.parametrize(
    "line", ["{", "[1]", '{"question": "no id"}', '{"id": "x"}', '{"id": "x", "question": "y", "expect": 3}']
)
def test_a_bad_line_is_named_with_its_number(line):
    with pytest.raises(PromptError, match=r"set\.jsonl:2"):
        parse_prompts('{"id": "q1", "question": "ok"}\n' + line, "set.jsonl")


def test_an_empty_set_is_an_error():
    with pytest.raises(PromptError, match="empty"):
        parse_prompts("\n", "set.jsonl")


def test_the_project_of_the_experiment_comes_first(tmp_path):
    prompts = tmp_path / "project" / "fixtures" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "small-talk.jsonl").write_text('{"id": "mine", "question": "hello"}')
    folders = prompts_dirs(tmp_path / "project" / "experiments" / "load" / "storm.yaml")
    assert folders[0] == prompts
    assert load_prompts("small-talk", folders)[0].id == "mine"


def test_our_own_sets_are_found_from_anywhere(tmp_path):
    folders = prompts_dirs(tmp_path / "storm.yaml")
    assert "small-talk" in prompt_sets(folders)
    assert load_prompts("product-questions", folders)[0].expect


def test_an_unknown_set_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(PromptError, match=r"'nope'.*prompts"):
        load_prompts("nope", prompts_dirs(None))
