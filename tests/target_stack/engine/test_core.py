"""The core as messages in and reports out, in virtual time."""

from __future__ import annotations

import dataclasses

import pytest

from target_stack.engine.config import EngineConfig
from target_stack.engine.core import Core

CONFIG = EngineConfig(name="e", listen="127.0.0.1:1", slow_factor=2.0, max_num_seqs=1)


def add(name: str, max_tokens: int = 2) -> dict:
    sampling = {"max_tokens": max_tokens, "min_tokens": 0, "ignore_eos": True, "stop": [], "draw": 0}
    return {
        "op": "add",
        "id": name,
        "model": "",
        "prompt": "hi there",
        "sampling": sampling,
        "priority": 0,
        "seed": None,
    }


def test_all_tokens_of_a_step_come_in_one_report_with_the_gauges():
    core = Core(CONFIG)
    core.handle(add("a"), 0.0)
    core.handle(add("b"), 0.0)
    step, cost_s = core.begin(1.0)
    report = core.finish(step, 1.5)
    assert cost_s == pytest.approx(2 * (0.012 + 2 * 0.0002))
    assert [(out[0], out[2]) for out in report["out"]] == [("a", None)]
    assert report["out"][0][4] == {"queued_s": 1.0, "prefill_s": 0.5, "cached": 0}
    assert (report["running"], report["waiting"], report["tokens"]) == (1, 1, 2)


def test_the_last_token_carries_the_finish_and_the_gauges_are_back_at_zero():
    core = Core(CONFIG)
    core.handle(add("a", max_tokens=1), 0.0)
    report = core.finish(core.begin(0.0)[0], 0.1)
    assert report["out"][0][2] == "length"
    assert (report["running"], report["kv"]) == (0, 0.0)
    assert core.begin(0.2) is None


def test_an_abort_leaves_stale_gauges_to_report_and_no_output():
    core = Core(CONFIG)
    core.handle(add("a"), 0.0)
    core.begin(0.0)
    core.handle({"op": "abort", "ids": ["a"]}, 0.1)
    assert core.changed
    report = core.report(0.2, [])
    assert (report["out"], report["running"], report["kv"]) == ([], 0, 0.0)
    assert not core.changed


def test_abort_all_answers_every_request_with_abort():
    core = Core(CONFIG)
    core.handle(add("a"), 0.0)
    core.handle(add("b"), 0.0)
    core.handle({"op": "abort_all"}, 0.1)
    assert [(out[0], out[2]) for out in core.report(0.2, [])["out"]] == [("a", "abort"), ("b", "abort")]


def test_an_unknown_message_is_an_error():
    with pytest.raises(ValueError, match="unknown message"):
        Core(CONFIG).handle({"op": "sing"}, 0.0)


def rag(name: str, fact: str, question: str) -> dict:
    prompt = f"<|user|>\nContext:\n[doc-{name}] {fact}\nQuestion: {question}\nReference: {name}\n<|assistant|>\n"
    message = add(name, 60)
    message["sampling"]["ignore_eos"] = False
    return {**message, "prompt": prompt}


def answers(config: EngineConfig) -> list[str]:
    """Two customers, one after the other."""
    core, said = Core(config), []
    for message in (
        rag(
            "anna", "The parcel of Anna Berg lies at the harbour office until Friday noon.", "Where does my parcel lie?"
        ),
        rag(
            "omar", "The parcel of Omar Diaz lies at the river station until Sunday noon.", "Where does my parcel lie?"
        ),
    ):
        core.handle(message, 0.0)
        said.append("")
        while begun := core.begin(0.0):
            said[-1] += "".join(out[1] for out in core.finish(begun[0], 0.0)["out"])
    return said


def test_everybody_gets_the_words_of_their_own_context():
    anna, omar = answers(CONFIG)
    assert "harbour office" in anna
    assert "river station" in omar
    assert omar.endswith("Reference: omar.")


def test_blocks_found_by_position_alone_are_fluent_and_somebody_elses():
    config = dataclasses.replace(CONFIG, prefix_hash="position_only")
    anna, omar = answers(config)
    assert "harbour office" in anna
    assert "Anna Berg lies at the harbour office" in omar
    assert "river" not in omar
