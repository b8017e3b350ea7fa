"""A real engine on a device that misbehaves, seen by its clients."""

from __future__ import annotations

import json
import time

import pytest

from target_stack.device.registers import Registers

pytestmark = pytest.mark.system


@pytest.fixture
def registers(tmp_path) -> Registers:
    made = Registers.at(tmp_path / "gpu")
    made["total_bytes"] = 24 << 30
    return made


def read_tokens(reply, count: int) -> None:
    for _ in range(2 * count):
        reply.readline()


def test_a_hung_device_is_silence_behind_a_healthy_server_and_goes_on_afterwards(start_engine, registers, tmp_path):
    engine = start_engine(device=str(tmp_path / "gpu"))
    reply = engine.chat(60)
    read_tokens(reply, 3)
    registers["hung"] = 1
    time.sleep(0.1)  # what was in flight arrives
    steps = engine.series("iteration_tokens_total_count")
    newcomer = engine.chat(2)
    time.sleep(0.1)
    assert engine.call("GET", "/health")[0] == 200
    assert (engine.series("iteration_tokens_total_count"), engine.series("num_requests_waiting")) == (steps, 0)
    registers["hung"] = 0
    assert reply.read().endswith(b"data: [DONE]\n\n")
    assert newcomer.read().endswith(b"data: [DONE]\n\n")


def test_a_hang_beyond_the_servers_patience_kills_the_engine(start_engine, registers, tmp_path):
    registers["hung"] = 1
    engine = start_engine(device=str(tmp_path / "gpu"), execute_model_timeout_s=0.3)
    assert engine.call("POST", "/v1/completions", {"prompt": "x"})[0] == 500
    assert engine.exit_status() == 0


def test_a_lost_device_breaks_streams_as_a_dead_core_does_and_keeps_the_next_engine_from_starting(
    start_engine, registers, tmp_path, split_frames
):
    engine = start_engine(device=str(tmp_path / "gpu"))
    reply = engine.chat(400)
    read_tokens(reply, 3)
    registers["lost"] = 1
    error, done = split_frames(reply.read().decode())[-2:]
    assert (json.loads(error)["error"]["code"], done) == (500, "[DONE]")
    assert engine.exit_status() == 0
    assert start_engine(wait=False, device=str(tmp_path / "gpu")).exit_status() == 1


def test_what_the_engine_does_is_written_where_the_device_process_reads_it(start_engine, registers, tmp_path):
    engine = start_engine(device=str(tmp_path / "gpu"))
    engine.chat(20).read()
    assert registers["pid"] == engine.core
    assert registers["steps"] >= 20
    assert 0.1 < registers["busy_s"] < 5
    assert registers["memory_bytes"] == (2 << 30) + 512 * (40 << 20)


def test_a_slow_device_makes_slow_steps(start_engine, registers, tmp_path):
    registers["speed"] = 0.2
    engine = start_engine(device=str(tmp_path / "gpu"))
    began = time.monotonic()
    engine.chat(12).read()
    assert time.monotonic() - began > 5 * 12 * 0.008
