"""Life and death of a real engine: two processes, real signals, real sockets."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

SLOW = {"decode_s_per_step": 0.03}


def read_tokens(reply, count: int) -> None:
    """Read that many non-empty lines of a stream."""
    seen = 0
    while seen < count:
        line = reply.readline()
        assert line, "the stream ended early"
        seen += line.startswith(b"data: ")


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone_within(pid: int, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def last_frames(reply, split_frames) -> list[str]:
    return split_frames(reply.read().decode())[-2:]


def test_a_chat_streams_whole_and_counts_what_it_sent(start_engine, split_frames):
    engine = start_engine()
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "ignore_eos": True, "stream": True}
    body["stream_options"] = {"include_usage": True}
    reply = engine.send("POST", "/v1/chat/completions", body, {"X-Request-Id": "abc-1"}).getresponse()
    *chunks, usage, done = split_frames(reply.read().decode())
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert done == "[DONE]"
    assert {json.loads(chunk)["id"] for chunk in chunks} == {"chatcmpl-abc-1"}
    assert [json.loads(chunk)["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 5 + ["length"]
    assert json.loads(usage)["usage"]["completion_tokens"] == 5
    assert engine.series("generation_tokens_total") == 5
    assert engine.series('request_success_total{engine="0",finished_reason="length"') == 1


def test_the_small_routes_answer(start_engine):
    engine = start_engine()
    assert [engine.call("GET", path)[0] for path in ("/health", "/ping", "/metrics", "/v1/models")] == [200] * 4
    assert engine.call("POST", "/ping") == (200, "")
    assert engine.call("GET", "/version") == (200, '{"version":"0.32.0"}')
    assert engine.call("GET", "/load") == (200, '{"server_load":0}')
    assert engine.call("GET", "/nowhere") == (404, '{"detail":"Not Found"}')
    assert engine.call("GET", "/v1/chat/completions")[0] == 405
    counted = json.loads(engine.call("POST", "/tokenize", {"prompt": "a small lamp"})[1])
    assert (counted["count"], counted["token_strs"]) == (3, None)
    assert engine.call("POST", "/detokenize", {"tokens": counted["tokens"]}) == (200, '{"prompt":"a small lamp"}')
    assert engine.call("POST", "/v1/completions", {}, {"content-type": "text/plain"})[0] == 400


def test_a_text_completion_gives_n_choices_for_each_prompt(start_engine, split_frames):
    engine = start_engine()
    body = {"prompt": ["one", "two"], "n": 2, "max_tokens": 3}
    whole = json.loads(engine.call("POST", "/v1/completions", body)[1])
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2, 3]
    assert whole["usage"]["completion_tokens"] == 12
    texts = [""] * 4
    for frame in split_frames(engine.call("POST", "/v1/completions", {**body, "stream": True})[1])[:-1]:
        choice = json.loads(frame)["choices"][0]
        texts[choice["index"]] += choice["text"]
    assert texts == [choice["text"] for choice in whole["choices"]]


def test_a_frozen_core_is_silent_behind_a_healthy_server_and_goes_on_when_thawed(start_engine, split_frames):
    engine = start_engine()
    reply = engine.chat(60)
    read_tokens(reply, 5)
    os.kill(engine.core, signal.SIGSTOP)
    time.sleep(0.1)  # what was in flight arrives
    before = engine.series("iteration_tokens_total_count"), engine.series("num_requests_running")
    newcomer = engine.chat(2)
    assert engine.call("GET", "/health")[0] == 200
    assert (engine.series("iteration_tokens_total_count"), engine.series("num_requests_running")) == before
    assert engine.series("num_requests_waiting") == 0
    os.kill(engine.core, signal.SIGCONT)
    finish, done = last_frames(reply, split_frames)
    assert (json.loads(finish)["choices"][0]["finish_reason"], done) == ("length", "[DONE]")
    assert last_frames(newcomer, split_frames)[1] == "[DONE]"


def test_a_killed_core_breaks_streams_with_200_and_whole_answers_with_500_then_the_server_leaves(
    start_engine, split_frames, capture
):
    engine = start_engine(cost=SLOW)
    stream = engine.chat(400)
    read_tokens(stream, 3)
    whole: list[tuple[int, str]] = []
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 400, "ignore_eos": True}
    waiting = threading.Thread(target=lambda: whole.append(engine.call("POST", "/v1/chat/completions", body)))
    waiting.start()
    engine.until("num_requests_running", 2)
    os.kill(engine.core, signal.SIGKILL)
    killed_at = time.monotonic()
    assert stream.status == 200
    assert "\n\n".join(last_frames(stream, split_frames)) in capture("stream_tail_engine_killed.txt").replace(
        "data: ", ""
    )
    assert engine.call("GET", "/health")[0] == 503
    waiting.join()
    assert whole == [(500, capture("nonstream_engine_killed.json"))]
    assert engine.exit_status() == 0
    assert time.monotonic() - killed_at < 3


def test_a_server_told_to_outlive_its_core_answers_503_and_500(start_engine, capture):
    engine = start_engine(keep_alive_on_engine_death=True)
    os.kill(engine.core, signal.SIGKILL)
    time.sleep(0.1)
    assert engine.call("GET", "/health")[0] == 503
    assert engine.call("POST", "/v1/completions", {"prompt": "x"}) == (500, capture("nonstream_engine_killed.json"))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_killed_server_takes_its_core_along(start_engine, frozen):
    engine = start_engine()
    core = engine.core
    if frozen:
        os.kill(core, signal.SIGSTOP)
    engine.process.kill()
    engine.process.join(5)
    assert gone_within(core, 2)


def abandoned(engine, state: str) -> None:
    """Nobody is left who waits, nothing is held for them, and no counter calls it an abort."""
    engine.until("num_requests_running", 0)
    assert engine.series("kv_cache_usage_perc") == 0, state
    assert engine.series('request_success_total{engine="0",finished_reason="abort"') == 0, state


def test_a_client_that_hangs_up_frees_its_place_and_counts_nowhere(start_engine):
    engine = start_engine(cost={"prefill_s_per_token": 0.002}, max_num_seqs=1)
    decoding = engine.send_chat(400)
    read_tokens(decoding.getresponse(), 4)
    queued = engine.send_chat(400)
    engine.until("num_requests_waiting", 1)
    queued.close()
    engine.until("num_requests_waiting", 0)
    decoding.close()
    abandoned(engine, "mid-decode and queued")
    prefilling = engine.send_chat(400, words="word " * 200)  # 0.4 s of prefill
    time.sleep(0.1)
    prefilling.close()
    abandoned(engine, "prefill")
    whole = engine.send_chat(400, stream=False)
    engine.until("num_requests_running", 1)
    whole.close()
    abandoned(engine, "whole answer")


def test_a_full_queue_answers_503_without_retry_after(start_engine, capture):
    engine = start_engine(max_num_queued_reqs=2, cost=SLOW)
    served = [engine.chat(8), engine.chat(8)]
    refused = engine.chat(8)
    assert (refused.status, refused.headers["retry-after"]) == (503, None)
    assert refused.read().decode() == capture("queue_full_503.json")
    assert [reply.status for reply in served] == [200, 200]
    assert engine.series('admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"') == 1


def test_a_backlog_of_prompts_answers_503_with_its_own_words(start_engine):
    engine = start_engine(max_num_queued_tokens=5, cost={"prefill_s_base": 0.4})
    first, second = engine.send_chat(2, words="one two three four"), engine.send_chat(2)
    replies = [each.getresponse() for each in (first, second)]
    assert sorted(reply.status for reply in replies) == [200, 503]
    assert "prefill token backlog limit" in "".join(reply.read().decode() for reply in replies)
    assert engine.series('admission_rejections_total{model_name="tiny",reason="max_num_queued_tokens"') == 1
    assert engine.chat(2).status == 200  # whose prompt is computed burdens nobody


def test_a_key_guards_what_costs_and_leaves_health_and_metrics_open(start_engine):
    engine = start_engine(api_key="s3", enable_request_id_headers=True)
    assert engine.call("GET", "/v1/models") == (401, '{"error":"Unauthorized"}')
    assert engine.call("GET", "/v1/models", headers={"Authorization": "Bearer s3"})[0] == 200
    assert [engine.call("GET", path)[0] for path in ("/health", "/metrics", "/version")] == [200] * 3
    named = engine.send("GET", "/version", headers={"X-Request-Id": "abc"}).getresponse()
    assert named.headers["x-request-id"] == "abc"


def test_silence_is_filled_with_comments_and_load_is_told_on_request(start_engine):
    engine = start_engine(sse_keep_alive_interval=0.05, cost={"prefill_s_base": 0.3}, enable_server_load_tracking=True)
    stream = engine.send_chat(2)
    text = stream.getresponse().read().decode()
    assert text.startswith(": keep-alive\n\n")
    assert text.endswith("data: [DONE]\n\n")
    body = {"prompt": "x", "max_tokens": 1}
    whole = engine.send("POST", "/v1/completions", body, {"endpoint-load-metrics-format": "TEXT"}).getresponse()
    wanted = "TEXT named_metrics.num_requests_waiting=0.0, named_metrics.kv_cache_usage_perc=0.0"
    assert whole.headers["endpoint-load-metrics"] == wanted
    assert engine.call("GET", "/load") == (200, '{"server_load":0}')


def test_sigterm_aborts_open_requests_with_200_and_leaves_nothing(start_engine, split_frames):
    engine = start_engine(cost=SLOW)
    core, reply = engine.core, engine.chat(400)
    read_tokens(reply, 3)
    engine.process.terminate()
    finish, done = last_frames(reply, split_frames)
    assert (reply.status, json.loads(finish)["choices"][0]["finish_reason"], done) == (200, "abort", "[DONE]")
    assert engine.exit_status() == 0
    assert gone_within(core, 1)


def test_sigterm_with_a_drain_lets_open_requests_finish_and_refuses_new_ones(start_engine, split_frames):
    engine = start_engine(cost=SLOW, shutdown_timeout=5)
    reply = engine.chat(20)
    read_tokens(reply, 3)
    engine.process.terminate()
    time.sleep(0.1)
    assert engine.call("GET", "/health")[0] == 200
    status, body = engine.call("POST", "/v1/completions", {"prompt": "x"})
    assert (status, json.loads(body)["error"]["message"]) == (500, "cannot schedule new futures after shutdown")
    assert json.loads(last_frames(reply, split_frames)[0])["choices"][0]["finish_reason"] == "length"
    assert engine.exit_status() == 0


def test_sigterm_on_a_frozen_core_still_ends_both(start_engine):
    engine = start_engine()
    core = engine.core
    os.kill(core, signal.SIGSTOP)
    engine.process.terminate()
    assert engine.exit_status() == 0
    assert gone_within(core, 1)


def test_a_loading_engine_refuses_connections_and_ends_at_once_on_sigterm(start_engine):
    engine = start_engine(wait=False, startup_delay_s=30)
    deadline = time.monotonic() + 10
    while (
        not Path(f"/proc/{engine.process.pid}/task/{engine.process.pid}/children").read_text()
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    with pytest.raises(ConnectionRefusedError):
        engine.call("GET", "/health")
    time.sleep(0.3)  # the signal handler follows the fork
    engine.process.terminate()
    assert engine.exit_status() == 0
