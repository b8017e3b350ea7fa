"""Two real engines, prefill and decode, and how their pair breaks: the rows of a real vLLM with NIXL that was measured.

Each test says what the original was seen to do; the numbers of the original stand beside it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.loopback import free_address

pytestmark = pytest.mark.system


def question(word: str, kv: object, max_tokens: int = 60) -> dict:
    text = f"Reference: {word}\nWhere does the river under the old mill go in the dry months?"
    return {"messages": [{"role": "user", "content": text}], "max_tokens": max_tokens, "kv_transfer_params": kv}


@pytest.fixture
def pair(start_engine):
    """Prefill and decode, without a proxy between them."""
    kv = {"role": "producer", "side_channel": free_address(), "transfer": free_address()}
    prefill = start_engine(name="prefill-t", kv_transfer={**kv, "lease_s": 0.5})
    return prefill, start_engine(name="decode-t", kv_transfer={"role": "consumer", "handshake_s": 0.6})


def reference(prefill, word: str) -> dict:
    asked = {"do_remote_decode": True, "do_remote_prefill": False}
    status, text = prefill.call("POST", "/v1/chat/completions", question(word, asked, max_tokens=1))
    assert status == 200, text
    return json.loads(text)["kv_transfer_params"]


def decoded(decode, word: str, kv: dict) -> tuple[int, str]:
    status, text = decode.call("POST", "/v1/chat/completions", question(word, kv))
    return status, json.loads(text)["choices"][0]["message"]["content"] if status == 200 else text


def worker_of(engine) -> int:
    return int(Path(f"/proc/{engine.core}/task/{engine.core}/children").read_text().split()[0])


def test_decode_goes_on_from_what_prefill_computed_and_the_blocks_are_free_then(pair):
    prefill, decode = pair
    kv = reference(prefill, "lantern")
    assert {"remote_engine_id", "remote_request_id", "remote_host", "remote_port", "tp_size"} <= set(kv)
    assert prefill.series("kv_cache_usage_perc") > 0
    assert "lantern" in decoded(decode, "lantern", kv)[1]
    prefill.until("kv_cache_usage_perc", 0)
    assert decode.series("nixl_xfer_time_seconds_count") == 1
    assert decode.series('prompt_tokens_by_source_total{engine="0",model_name="tiny",source="external_kv') > 20


def test_the_reference_of_another_prompt_brings_200_that_prompts_words_and_no_failure_anywhere(pair):
    prefill, decode = pair
    status, said = decoded(decode, "saffron", reference(prefill, "lantern"))
    assert (status, "lantern" in said, "saffron" in said) == (200, True, False)
    assert decode.series("nixl_num_failed_transfers_total") == 0


def test_prefill_killed_in_between_makes_decode_answer_500_at_once_and_stay_well(pair):
    prefill, decode = pair
    decoded(decode, "first", reference(prefill, "first"))
    kv = reference(prefill, "lantern")
    for pid in (worker_of(prefill), prefill.core, prefill.process.pid):
        os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    status, _ = decoded(decode, "lantern", kv)
    assert (status, time.monotonic() - began < 0.5) == (500, True)  # 10 ms there
    assert decode.series("nixl_num_failed_transfers_total") == 1
    assert "saffron" in decoded(decode, "saffron", {})[1]


def test_prefill_frozen_in_between_lets_decode_wait_until_it_thaws_while_others_are_served(pair):
    prefill, decode = pair
    decoded(decode, "first", reference(prefill, "first"))
    kv = reference(prefill, "lantern")
    said: list[tuple[int, str]] = []
    os.kill(worker_of(prefill), signal.SIGSTOP)
    waiting = threading.Thread(target=lambda: said.append(decoded(decode, "lantern", kv)))
    waiting.start()
    decode.until('num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="deferred"}', 1)
    assert (decode.series("num_requests_running"), decode.call("GET", "/health")[0]) == (0, 200)
    assert "saffron" in decoded(decode, "saffron", {})[1]
    time.sleep(0.7)  # a handshake would have ended by now: a transfer has no limit
    assert said == []
    os.kill(worker_of(prefill), signal.SIGCONT)
    waiting.join(10)
    assert (said[0][0], "lantern" in said[0][1]) == (200, True)


@pytest.mark.parametrize("change", [{"remote_engine_id": "0" * 32}, {"remote_port": 1}], ids=["engine id", "refused"])
def test_a_handshake_that_fails_is_500_after_a_while_and_no_failed_transfer(pair, change):
    prefill, decode = pair
    began = time.monotonic()
    status, _ = decoded(decode, "lantern", {**reference(prefill, "lantern"), **change})
    assert (status, time.monotonic() - began >= 0.6) == (500, True)  # 4 to 5 s there
    assert decode.series("nixl_num_failed_transfers_total") == 0


def test_block_ids_out_of_range_are_500_at_once_and_a_failed_transfer(pair):
    prefill, decode = pair
    kv = {**reference(prefill, "lantern"), "remote_block_ids": [[100_000]]}
    assert decoded(decode, "lantern", kv)[0] == 500
    assert decode.series("nixl_num_failed_transfers_total") == 1


def test_a_reference_that_has_expired_still_reads_and_only_prefill_counts_it(pair):
    prefill, decode = pair
    kv = reference(prefill, "lantern")
    prefill.until("nixl_num_kv_expired_reqs_total", 1)
    assert "lantern" in decoded(decode, "lantern", kv)[1]
    assert decode.series("nixl_num_failed_transfers_total") == 0


def test_a_frozen_worker_stops_the_engine_behind_a_healthy_server_and_a_killed_one_ends_it(pair):
    prefill, _ = pair
    os.kill(worker_of(prefill), signal.SIGSTOP)
    stream = prefill.send_chat(3)
    time.sleep(0.2)
    assert prefill.call("GET", "/health")[0] == 200
    assert prefill.series("generation_tokens_total") == 0
    os.kill(worker_of(prefill), signal.SIGCONT)
    assert stream.getresponse().read().endswith(b"data: [DONE]\n\n")
    os.kill(worker_of(prefill), signal.SIGKILL)
    assert prefill.exit_status() == 0
