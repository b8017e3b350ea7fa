"""Processes are limited in a group of ours and go back where they came from, in both layouts of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.faults.cpu_pressure import CpuPressure
from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.memory_pressure import MemoryPressure
from chaos.testing.clock import run_virtual
from chaos.testing.conformance import check_fault
from chaos.testing.host import InMemoryHost
from chaos.units import Ratio, Size

ROOT = Path("/sys/fs/cgroup")


@pytest.mark.parametrize("fault", [CpuPressure(by="cgroup"), MemoryPressure(by="cgroup")], ids=repr)
def test_the_newer_layout_keeps_the_contract(fault: CpuPressure | MemoryPressure) -> None:
    async def main() -> None:
        world = InMemoryHost()
        world.groups.version = 2
        await check_fault(fault, (world.add_target("engine-a", processes=2),), world.host)

    run_virtual(main)


@pytest.mark.parametrize(
    ("version", "home", "knobs"),
    [
        (1, "cpu/stack/unit", {"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": "2000"}),
        (2, "stack/unit", {"cpu.max": "2000 10000"}),
    ],
)
def test_processes_are_moved_with_their_children_and_back_with_those_born_inside(
    version: int, home: str, knobs: dict[str, str]
) -> None:
    async def main() -> None:
        world = InMemoryHost()
        world.groups.version = version
        target, fault = world.add_target("engine-a", processes=2), CpuPressure()
        undo = await fault.prepare((target,), world.host)
        await fault.inject((target,), undo, world.host)
        cell = Path(undo["cells"][0]["path"])
        assert {cell} == {world.groups.group_of(pid, "cpu") for pid in target.pids}
        assert cell.parent == (ROOT / home if version == 1 else ROOT)
        assert knobs == {name: world.files.read(cell / name) for name in knobs}
        born = world.processes.spawn(target.pids[0])
        await fault.revert(undo, world.host)
        assert {ROOT / home} == {world.groups.group_of(pid, "cpu") for pid in (*target.pids, born.pid)}
        assert world.files.read(cell / "cgroup.procs") is None

    run_virtual(main)


def test_the_least_that_the_kernel_grants_is_a_millisecond() -> None:
    assert {"cpu.max": "1000 100000"} == CpuPressure(share=Ratio(0.99)).knobs(2)
    assert {"cpu.max": "9500 10000"} == CpuPressure(share=Ratio(0.05)).knobs(2)


def test_swap_is_no_way_round_the_memory_limit() -> None:
    fault = MemoryPressure(room=Size(1 << 20))
    assert {"memory.max": "1048576", "memory.swap.max": "0"} == fault.knobs(2)
    assert {"memory.limit_in_bytes": "1048576", "memory.memsw.limit_in_bytes": "1048576"} == fault.knobs(1)


def test_without_control_groups_or_root_it_is_a_hog_and_who_insists_is_told_how_to_get_them() -> None:
    async def main() -> None:
        for version, root, why in ((None, True, "mount cgroups"), (1, False, "run brownout as root")):
            world = InMemoryHost()
            world.groups.version, world.kernel.root = version, root
            target = world.add_target("engine-a")
            assert "hog" == (await CpuPressure().prepare((target,), world.host))["way"]
            with pytest.raises(CannotInject, match=why):
                await CpuPressure(by="cgroup").prepare((target,), world.host)

    run_virtual(main)


def test_a_controller_that_no_group_above_hands_out_is_none() -> None:
    async def main() -> None:
        world = InMemoryHost()
        world.groups.version, world.groups.delegated = 2, "memory pids"
        target = world.add_target("engine-a")
        assert "hog" == (await CpuPressure().prepare((target,), world.host))["way"]
        assert "cgroup" == (await MemoryPressure().prepare((target,), world.host))["way"]

    run_virtual(main)


def test_one_target_is_limited_once() -> None:
    async def main() -> None:
        world = InMemoryHost()
        target, fault = world.add_target("engine-a"), CpuPressure()
        undo = await fault.prepare((target,), world.host)
        await fault.inject((target,), undo, world.host)
        with pytest.raises(CannotInject, match="limited already"):
            await fault.prepare((target,), world.host)
        assert "cgroup" == (await MemoryPressure().prepare((target,), world.host))["way"]

    run_virtual(main)


def test_a_group_that_cannot_be_emptied_is_told_with_the_command_that_does_it() -> None:
    async def main() -> None:
        world = InMemoryHost()
        target, fault = world.add_target("engine-a"), CpuPressure()
        undo = await fault.prepare((target,), world.host)
        await fault.inject((target,), undo, world.host)
        world.groups.remove_folder = lambda path: False
        with pytest.raises(RevertFailed, match="rmdir /sys/fs/cgroup/cpu/stack/unit/brownout-cpu_pressure-"):
            await fault.revert(undo, world.host)

    run_virtual(main)


def test_a_hog_leaves_a_reserve_and_takes_nothing_where_there_is_no_more() -> None:
    async def main() -> None:
        world = InMemoryHost()
        target, fault = world.add_target("engine-a"), MemoryPressure(share=Ratio(0.5), by="hog")
        undo = await fault.prepare((target,), world.host)
        reserve = 8192 * (1 << 20) // 10
        assert abs(undo["reserve"] - reserve) <= 1
        assert abs(undo["bytes"] - (4096 * (1 << 20) - reserve) // 2) <= 1
        world.kernel.available = 600 << 20
        with pytest.raises(CannotInject, match="only 600 MiB"):
            await fault.prepare((target,), world.host)

    run_virtual(main)
