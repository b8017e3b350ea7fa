"""A client leaves: wherever its request stands, place and blocks are back within two steps."""

from __future__ import annotations

import time

import pytest

from target_stack.engine.config import EngineConfig
from target_stack.engine.core import Core

MOST_STEPS = 2


def add(name: str, words: int, tokens: int) -> dict:
    sampling = {"max_tokens": tokens, "min_tokens": 0, "ignore_eos": True, "stop": [], "draw": 0}
    prompt = " ".join(f"{name}{number}" for number in range(words))
    asked = {"model": "", "prompt": prompt, "sampling": sampling, "priority": 0, "seed": None}
    return {"op": "add", "id": name, **asked}


class Scene:
    """A core with one request that stays, and one whose client will leave."""

    def __init__(self, *, seqs: int, words: int = 20, tokens: int = 40) -> None:
        self.core = Core(EngineConfig(name="e", listen="127.0.0.1:1", max_num_seqs=seqs, max_num_batched_tokens=32))
        self.core.handle(add("stays", 8, 1000), 0.0)
        self.alone = self.step()
        self.core.handle(add("leaves", words, tokens), 0.0)

    def step(self) -> dict:
        return self.core.finish(self.core.begin(0.0)[0], 0.0)

    def gone_after(self, report: dict) -> int:
        """Steps until the gauges show the one that stays, and nothing of the other."""
        for steps in range(1, 10):
            blocks = 1 - report["kv"], 1 - self.alone["kv"]
            if (report["running"], report["waiting"]) == (1, 0) and blocks[0] == pytest.approx(blocks[1], abs=0.004):
                return steps
            assert not [out for out in report["out"] if out[0] == "leaves"]
            report = self.step()
        raise AssertionError("never")


def test_while_it_is_queued():
    scene = Scene(seqs=1)
    assert scene.step()["waiting"] == 1
    scene.core.handle({"op": "abort", "ids": ["leaves"]}, 0.0)
    assert scene.gone_after(scene.step()) <= MOST_STEPS


def test_in_the_middle_of_its_prefill():
    scene = Scene(seqs=4, words=100)
    report = scene.step()
    assert (report["running"], [out[0] for out in report["out"]]) == (2, ["stays"])
    scene.core.handle({"op": "abort", "ids": ["leaves"]}, 0.0)
    assert scene.gone_after(scene.step()) <= MOST_STEPS


def test_in_the_middle_of_its_answer():
    scene = Scene(seqs=4)
    for _ in range(10):
        report = scene.step()
    assert "leaves" in [out[0] for out in report["out"]]
    scene.core.handle({"op": "abort", "ids": ["leaves"]}, 0.0)
    assert scene.gone_after(scene.step()) <= MOST_STEPS


@pytest.mark.parametrize("during", [True, False], ids=["while the step runs", "when it is out"])
def test_at_its_last_token(during):
    scene = Scene(seqs=4, tokens=3)
    scene.step(), scene.step()
    step, _ = scene.core.begin(0.0)
    if during:
        scene.core.handle({"op": "abort", "ids": ["leaves"]}, 0.0)
    report = scene.core.finish(step, 0.0)
    assert ("leaves" in [out[0] for out in report["out"]]) is not during
    scene.core.handle({"op": "abort", "ids": ["leaves"]}, 0.0)
    assert scene.gone_after(scene.step()) <= MOST_STEPS


@pytest.mark.system
def test_on_a_real_engine(start_engine):
    engine = start_engine(cost={"decode_s_per_step": 0.15})
    stays = engine.send_chat(400)
    stays.getresponse().readline()
    engine.until("num_requests_running", 1)
    leaves = engine.send_chat(400, words="word " * 300)
    leaves.getresponse().readline()
    engine.until("num_requests_running", 2)
    before = engine.series("iteration_tokens_total_count")
    leaves.close()
    deadline = time.monotonic() + 5
    while engine.series("num_requests_running") != 1:
        assert time.monotonic() < deadline
    assert engine.series("iteration_tokens_total_count") - before <= MOST_STEPS
    assert engine.series("kv_cache_usage_perc") < 0.01
