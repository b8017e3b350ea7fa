"""The device as the core meets it."""

from __future__ import annotations

import pytest

from target_stack.device.registers import Registers
from target_stack.engine.config import EngineConfig
from target_stack.engine.core import Core
from target_stack.engine.gpu import Gpu, GpuFailed

GIB = 1 << 30
CONFIG = EngineConfig(
    name="e", listen="127.0.0.1:1", max_model_len=64, num_gpu_blocks=16, weights_bytes=4 * GIB, kv_block_bytes=GIB
)


def registers(**values: float) -> Registers:
    made = Registers.private()
    for name, value in {"total_bytes": 24 * GIB, **values}.items():
        made[name] = value
    return made


def add(name: str, tokens: int) -> dict:
    sampling = {"max_tokens": tokens, "min_tokens": 0, "ignore_eos": True, "stop": [], "draw": 0}
    asked = {"model": "", "prompt": name * 12, "sampling": sampling, "priority": 0, "seed": None}
    return {"op": "add", "id": name, **asked}


def test_without_a_device_process_everything_is_there():
    gpu = Gpu(CONFIG, Registers.private())
    assert (gpu.claim(1), gpu.withheld, gpu.speed, gpu.hangs(0.0)) == (16, 0, 1.0, False)


def test_memory_that_somebody_has_already_means_fewer_blocks():
    assert Gpu(CONFIG, registers(reserved_bytes=10 * GIB)).claim(1) == 10


def test_a_device_without_room_for_one_full_request_is_refused_in_the_servers_words():
    with pytest.raises(GpuFailed, match=r"max seq len \(64\), 4\.00 GiB KV cache is needed.*\(3\.00 GiB\)"):
        Gpu(CONFIG, registers(reserved_bytes=17 * GIB)).claim(1)


@pytest.mark.parametrize("trouble", ["lost", "unusable"])
def test_an_engine_does_not_come_up_on_a_device_that_is_lost_or_needs_a_reset(trouble):
    with pytest.raises(GpuFailed, match="CUDA unknown error"):
        Gpu(CONFIG, registers(**{trouble: 1})).claim(1)


def test_memory_that_is_taken_later_is_withheld_beyond_what_was_free():
    device = registers()
    gpu = Gpu(CONFIG, device)
    gpu.claim(1)
    device["reserved_bytes"] = 4 * GIB
    assert gpu.withheld == 0
    device["reserved_bytes"] = 9.5 * GIB
    assert gpu.withheld == 6


@pytest.mark.parametrize("trouble", ["lost", "unusable", "faults"])
def test_a_fault_destroys_what_runs(trouble):
    device = registers()
    gpu = Gpu(CONFIG, device)
    device[trouble] = 1
    with pytest.raises(GpuFailed, match="CUDA error"):
        gpu.hangs(0.0)


def test_faults_before_the_start_are_somebody_elses():
    assert not Gpu(CONFIG, registers(faults=3)).hangs(0.0)


def test_a_hang_is_waited_out_for_as_long_as_the_server_waits():
    gpu = Gpu(CONFIG, registers(hung=1))
    assert gpu.hangs(299.0)
    with pytest.raises(GpuFailed, match="execute_model timed out"):
        gpu.hangs(301.0)


def test_work_at_half_the_speed_keeps_the_device_busy_twice_as_long():
    device = registers(speed=0.5)
    Gpu(CONFIG, device).worked(0.1)
    assert (device["busy_s"], device["steps"]) == (0.2, 1)


def test_withheld_blocks_preempt_now_and_every_request_finishes_once_they_are_back():
    core, ends = Core(CONFIG), []
    for name in "abc":
        core.handle(add(name, 20), 0.0)
    core.finish(core.begin(0.0)[0], 0.1)
    core.withhold(14)
    short = core.report(0.2, [])
    assert (short["preemptions"], short["running"] + short["waiting"]) == (1, 3)
    core.withhold(16)
    assert core.begin(0.3) is None
    assert core.wakes_at(0.3) == pytest.approx(0.35)
    core.withhold(0)
    while begun := core.begin(1.0):
        ends += [out[0] for out in core.finish(begun[0], 1.0)["out"] if out[2]]
    assert sorted(ends) == ["a", "b", "c"]
    assert core.report(2.0, [])["kv"] == 0.0
