"""The KV connector between two cores, the worker's part played by hand: what is held, fetched and believed."""

from __future__ import annotations

import pytest

from target_stack.engine.config import EngineConfig
from target_stack.engine.core import Core
from target_stack.engine.kv_transfer import ASK, KvTransfer

PROMPT = "<|user|>\nReference: lantern\nWhere does the river under the old mill go in the dry months?\n<|assistant|>\n"
OTHER = (
    "<|user|>\nReference: saffron\nWho keeps the keys of the tower while the warden is away at sea?\n<|assistant|>\n"
)
PRODUCER = {"role": "producer", "side_channel": "127.0.0.1:1", "transfer": "127.0.0.1:2"}
CONSUMER = {"role": "consumer"}


def core(kv: dict[str, object], engine_id: str = "p" * 32) -> Core:
    return Core(EngineConfig("e", "127.0.0.1:1", kv_transfer=KvTransfer.from_json(kv)), engine_id=engine_id)


def add(name: str, prompt: str, kv: object = None, max_tokens: int = 40) -> dict:
    sampling = {"max_tokens": max_tokens, "min_tokens": 0, "ignore_eos": False, "stop": [], "draw": 0}
    said = {"model": "", "prompt": prompt, "sampling": sampling, "priority": 0, "seed": None}
    return {"op": "add", "id": name, **said, **({"kv": kv} if kv else {})}


def prefilled(prompt: str, producer: Core) -> tuple[dict, list[str]]:
    """The reference of a prompt computed at `producer`, and the words that its worker was told to hold."""
    producer.handle(add(prompt, prompt, ASK, max_tokens=1), 0.0)
    report = producer.finish(producer.begin(0.0)[0], 0.1)
    (write,) = producer.orders()
    return report["out"][0][5]["kv"], [word for _, words in write["blocks"] for word in words]


def answer(decode: Core) -> str:
    said = ""
    while (begun := decode.begin(1.0)) is not None:
        said += "".join(out[1] for out in decode.finish(begun[0], 1.0)["out"])
    return said


def test_a_prompt_computed_elsewhere_is_answered_as_if_it_had_been_computed_here():
    alone = core(CONSUMER)
    alone.handle(add("x", PROMPT), 0.0)
    reference, words = prefilled(PROMPT, core(PRODUCER))
    decode = core(CONSUMER)
    decode.handle(add("x", PROMPT, reference), 0.0)
    decode.handle({"op": "fetched", "id": "x", "words": words, "seconds": 0.01}, 0.5)
    assert answer(decode) == answer(alone)


def decode_with(words: list[str]) -> Core:
    """A decode that was asked for OTHER with the reference of another prompt."""
    decode = core(CONSUMER)
    decode.handle(add("x", OTHER, {"do_remote_prefill": True}), 0.0)
    decode.handle({"op": "fetched", "id": "x", "words": words, "seconds": 0.01}, 0.5)
    return decode


def test_a_reference_to_another_prompt_is_believed_and_quotes_that_prompt():
    _, words = prefilled(PROMPT, core(PRODUCER))
    said = answer(decode_with(words))
    assert ("lantern" in said, "saffron" in said) == (True, False)


def test_what_is_fetched_is_deferred_and_not_running():
    decode = core(CONSUMER)
    decode.handle(add("x", PROMPT, {"do_remote_prefill": True}), 0.0)
    assert decode.begin(0.1) is None
    report = decode.report(0.1, [])
    assert (report["running"], report["waiting"], report["deferred"]) == (0, 0, 1)
    assert report["kv_transfer"]["stages"] == {"handshake": 1, "transfer": 0}
    assert decode.orders() == [{"op": "fetch", "id": "x", "from": {"do_remote_prefill": True}}]


@pytest.mark.parametrize(("policy", "out"), [("fail", [["x", "", "error"]]), ("recompute", [])])
def test_a_fetch_that_failed_fails_its_request_or_is_made_good_here(policy: str, out: list[list[str]]):
    decode = core({**CONSUMER, "policy": policy})
    decode.handle(add("x", PROMPT, {"do_remote_prefill": True}), 0.0)
    decode.handle({"op": "stage", "id": "x", "stage": "transfer"}, 0.1)
    decode.handle({"op": "failed", "id": "x", "why": "block ids out of range"}, 0.2)
    report = decode.report(0.2, [])
    assert [each[:3] for each in report["out"]] == out
    assert report["kv_transfer"]["failed_transfers"] == 1
    assert bool(answer(decode)) is (policy == "recompute")


def test_who_leaves_while_the_prompt_is_fetched_ends_the_fetch():
    decode = core(CONSUMER)
    decode.handle(add("x", PROMPT, {"do_remote_prefill": True}), 0.0)
    decode.orders()
    decode.handle({"op": "abort", "ids": ["x"]}, 0.1)
    assert decode.orders() == [{"op": "drop", "id": "x"}]
    assert decode.report(0.2, [])["deferred"] == 0


def test_blocks_are_held_until_a_peer_took_them():
    producer = core(PRODUCER)
    reference, _ = prefilled(PROMPT, producer)
    held = producer.report(0.2, [])["kv"]
    producer.handle({"op": "taken", "request": reference["remote_request_id"]}, 0.3)
    assert held > 0
    assert producer.report(0.3, [])["kv"] == 0


def test_blocks_that_nobody_fetches_are_free_when_their_lease_ends_and_that_is_counted():
    producer = core({**PRODUCER, "lease_s": 30.0})
    reference, _ = prefilled(PROMPT, producer)
    assert producer.wakes_at(1.0) == pytest.approx(30.1)
    producer.begin(30.2)
    report = producer.report(30.2, [])
    assert (report["kv"], report["kv_transfer"]["expired"]) == (0, 1)
    producer.handle({"op": "taken", "request": reference["remote_request_id"]}, 31.0)  # too late, and no harm


def test_who_leaves_before_the_prompt_is_computed_leaves_nothing_held():
    producer = core(PRODUCER)
    producer.handle(add("x", PROMPT, ASK, max_tokens=1), 0.0)
    producer.begin(0.0)
    producer.handle({"op": "abort", "ids": ["x"]}, 0.0)
    assert (producer.report(0.1, [])["kv"], producer.orders()) == (0, [])


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"role": "both"}, "kv_transfer.role is producer or consumer"),
        ({"role": "producer"}, "a producer needs side_channel and transfer"),
        ({"role": "consumer", "policy": "retry"}, "kv_transfer.policy is fail or recompute"),
        ({"role": "consumer", "lease": 3}, "unknown key 'kv_transfer.lease'"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(record: dict[str, object], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        KvTransfer.from_json(record)
