"""Harm to a real GPU by a process of ours: proven on a fake NVML in memory, and as the stand-in on this machine."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence

import pytest

from chaos.faults.fault import CannotInject
from chaos.faults.gpu_contention import GpuContention
from chaos.faults.gpu_memory_pressure import GpuMemoryPressure
from chaos.faults.grips.hog import REAL, STAND_IN, HogFault
from chaos.inventory import Target
from chaos.ports import Ran
from chaos.testing.clock import run_virtual
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.testing.host import InMemoryHost
from chaos.units import Ratio

TOTAL = 141 << 30
BOTH = (GpuMemoryPressure(share=Ratio(0.4)), GpuContention(share=Ratio(0.4)))


def nvml_of(world: InMemoryHost, count: int) -> Callable[[Sequence[str]], Ran]:
    """What NVML of a machine with so many GPUs says while saboteurs hold what they were ordered to."""

    def answer(words: Sequence[str]) -> Ran:
        gpu = int(words[-1])
        if words[1:3] != ["-m", "chaos.adapters.nvml"] or gpu >= count:
            return Ran(1, "", "Not Found")
        listed, busy = [{"pid": 77, "usedGpuMemory": 9 << 30}], [{"pid": 77, "smUtil": 30}]
        for orders in world.programs.at_work("torch_hog"):
            if gpu not in orders["gpus"]:
                continue
            pid = world.programs.pid_of(orders)
            memory = orders["share"] * TOTAL if orders["resource"] == "memory" else 1 << 29
            listed.append({"pid": pid, "usedGpuMemory": int(memory)})
            busy.append({"pid": pid, "smUtil": round(100 * orders["share"]) if orders["resource"] == "time" else 0})
        values = {
            "nvmlDeviceGetMemoryInfo": {"total": TOTAL},
            "nvmlDeviceGetComputeRunningProcesses": listed,
            "nvmlDeviceGetProcessUtilization": busy,
        }
        return Ran(0, json.dumps({name: {"return": 0, "value": value} for name, value in values.items()}), "")

    return answer


def with_gpus(world: InMemoryHost, count: int, *, there: bool = True) -> tuple[Target, ...]:
    """Engines on real GPUs of this machine; or only said to be, when they are not there."""
    targets = []
    for gpu in range(count):
        made = world.add_target(f"engine-{gpu}", processes=2)
        handles = {name: value for name, value in made.handles.items() if name != "device"}
        targets.append(dataclasses.replace(made, handles={**handles, "cuda": gpu}))
    if there:
        world.programs.tools[sys.executable] = nvml_of(world, count)
    return tuple(targets)


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("fault", BOTH, ids=repr)
def test_a_real_gpu_is_harmed_by_a_saboteur_and_nvml_tells(fault: HogFault, gpus: int) -> None:
    async def main() -> None:
        world = InMemoryHost()
        await check_fault(fault, with_gpus(world, gpus), world.host)

    run_virtual(main)


@pytest.mark.parametrize("fault", BOTH, ids=repr)
def test_nvml_confirms_nothing_that_was_not_started(fault: HogFault) -> None:
    async def main() -> None:
        world = InMemoryHost()
        await check_negative_control(fault, with_gpus(world, 1), world.host)

    run_virtual(main)


@pytest.mark.parametrize("fault", BOTH, ids=repr)
def test_the_undo_says_what_is_really_harmed(fault: HogFault) -> None:
    async def main() -> tuple[str, ...]:
        world = InMemoryHost()
        real, simulated = with_gpus(world, 1), (world.add_target("engine-a"),)
        blind = InMemoryHost()
        undos = [await fault.prepare(targets, world.host) for targets in (real, simulated)]
        undos.append(await fault.prepare(with_gpus(blind, 1, there=False), blind.host))
        return tuple(undo["fidelity"] for undo in undos)

    assert (REAL, "simulated device", STAND_IN) == run_virtual(main)


@pytest.mark.parametrize("fault", BOTH, ids=repr)
def test_where_there_is_no_gpu_the_machine_stands_in_and_the_kernel_tells(fault: HogFault) -> None:
    async def main() -> str:
        world = InMemoryHost()
        targets = with_gpus(world, 1, there=False)
        await check_fault(fault, targets, world.host)
        await check_negative_control(fault, targets, world.host)
        undo = await fault.prepare(targets, world.host)
        await fault.inject(targets, undo, world.host)
        return (await fault.confirm(targets, undo, world.host)).what

    assert run_virtual(main).startswith(f"{STAND_IN}: it ")


def test_a_stand_in_takes_its_share_of_what_is_free_beyond_a_reserve() -> None:
    async def main() -> tuple[int, int]:
        world = InMemoryHost()
        undo = await GpuMemoryPressure(share=Ratio(0.5)).prepare(with_gpus(world, 1, there=False), world.host)
        return undo["bytes"] >> 20, undo["reserve"] >> 20

    assert ((4096 - 819) // 2, 819) == run_virtual(main)


def test_gpus_of_which_nvml_knows_only_some_are_refused() -> None:
    async def main() -> str:
        world = InMemoryHost()
        targets = with_gpus(world, 2)
        world.programs.tools[sys.executable] = nvml_of(world, 1)
        with pytest.raises(CannotInject) as refused:
            await GpuContention().prepare(targets, world.host)
        return str(refused.value)

    assert "knows some of these GPUs" in run_virtual(main)


def test_real_and_simulated_gpus_are_not_harmed_at_once() -> None:
    async def main() -> tuple[str, ...]:
        world = InMemoryHost()
        return GpuContention().problems((*with_gpus(world, 1), world.add_target("engine-a")))

    assert run_virtual(main) == ("engine-0 have real GPUs and engine-a have not; harm them one after the other",)
