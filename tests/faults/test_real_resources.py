"""The contract of the resource faults on a real server: the kernel limits it, counts that, and lets it go."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.adapters.files import LocalFiles
from chaos.adapters.host import real_host
from chaos.faults.cpu_pressure import CpuPressure
from chaos.faults.disk_full import DiskFull
from chaos.faults.fault import CannotInject, Fault
from chaos.faults.fd_exhaustion import FdExhaustion
from chaos.faults.grips.cgroups import Controller, usable
from chaos.faults.grips.sightings import look_until_seen
from chaos.faults.memory_pressure import MemoryPressure
from chaos.inventory import Target
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Ratio, Size

pytestmark = pytest.mark.system

SERVER = """
import asyncio, os, sys, tempfile

async def answer(reader, writer):
    if await reader.read(4096):
        sum(range(60_000))
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
        await writer.drain()
    writer.close()

async def churn(file):
    file.write(bytes(8 << 20))
    os.fsync(file.fileno())
    while True:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        while file.read(1 << 16):
            pass
        await asyncio.sleep(0.02)

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    print(server.sockets[0].getsockname()[1], flush=True)
    with tempfile.TemporaryFile(buffering=0) as file:
        await (churn(file) if sys.argv[1:] else asyncio.sleep(600))

if os.fork() == 0:
    import ctypes, signal
    ctypes.CDLL(None).prctl(1, 9)
    signal.pause()
asyncio.run(main())
"""


@contextlib.contextmanager
def serving(*words: str) -> Iterator[Target]:
    """A server with a child, for as long as it is needed. With any word it goes on reading a file anew."""
    with subprocess.Popen([sys.executable, "-S", "-c", SERVER, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            yield Target("tools", "tool", None, (process.pid,), f"127.0.0.1:{port}")
        finally:
            process.kill()


DISK = """
import sys
from pathlib import Path
from target_stack.disks import attach, separate
assert separate()
attach(Path(sys.argv[1]), 4, None)
print("attached", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def with_disk(folder: Path) -> Iterator[Target]:
    """A target whose data is on a disk of its own."""
    command = [sys.executable, "-c", DISK, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert "attached\n" == holder.stdout.readline()
        data = {"folder": f"/proc/{holder.pid}/root{folder}", "limit_bytes": 4 << 20}
        try:
            yield Target("store", "vector-store", None, (holder.pid,), "127.0.0.1:1", handles={"data": data})
        finally:
            holder.kill()


def kept(fault: Fault, *words: str) -> None:
    """The contract and its negative control."""

    async def main(target: Target) -> None:
        async with real_host() as host:
            await check_negative_control(fault, (target,), host, within_s=1.0)
            await check_fault(fault, (target,), host, within_s=10.0)

    with serving(*words) as target:
        asyncio.run(main(target))


def kept_or_refused(controller: Controller, fault: Fault, *words: str) -> None:
    """The contract; where the kernel does not let us, the fault must say so instead of harming."""
    if isinstance(usable(controller, LocalFiles()), str):
        with pytest.raises(CannotInject, match="use `by: hog`"):
            kept(fault, *words)
    else:
        kept(fault, *words)
    assert [] == groups()


def groups() -> list[str]:
    """All control groups of ours that are left."""
    return [str(path) for path in Path("/sys/fs/cgroup").rglob("brownout-*_pressure-*") if path.is_dir()]


def test_a_server_without_descriptors_is_seen_and_gets_its_own_limit_back() -> None:
    with serving() as target:

        async def main() -> None:
            async with real_host() as host:
                await check_negative_control(FdExhaustion(), (target,), host, within_s=1.0)
                await check_fault(FdExhaustion(), (target,), host, within_s=10.0)

        before = resource.prlimit(target.pids[0], resource.RLIMIT_NOFILE)
        asyncio.run(main())
        assert before == resource.prlimit(target.pids[0], resource.RLIMIT_NOFILE)


def test_a_server_that_is_held_back_is_seen_and_goes_back_where_it_came_from() -> None:
    kept_or_refused("cpu", CpuPressure(share=Ratio(0.95), by="cgroup"))


def test_a_server_that_meets_its_memory_limit_is_seen_and_goes_back_where_it_came_from() -> None:
    kept_or_refused("memory", MemoryPressure(room=Size(4 << 20), by="cgroup"), "churn")


def test_hogs_are_seen_and_leave_nothing() -> None:
    kept(CpuPressure(share=Ratio(0.1), by="hog"))
    kept(MemoryPressure(share=Ratio(0.002), by="hog"))


ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk of limited size")


@ONLY_ROOT
def test_a_full_disk_is_seen_and_has_room_again(tmp_path: Path) -> None:
    async def main(target: Target) -> None:
        async with real_host() as host:
            await check_negative_control(DiskFull(), (target,), host, within_s=0.5)
            await check_fault(DiskFull(), (target,), host, within_s=10.0)

    with with_disk(tmp_path) as target:
        asyncio.run(main(target))
        assert [] == [*Path(target.handles["data"]["folder"]).iterdir()]


@ONLY_ROOT
def test_what_is_set_free_on_a_full_disk_is_taken_too(tmp_path: Path) -> None:
    async def main(target: Target) -> None:
        folder, fault = Path(target.handles["data"]["folder"]), DiskFull()
        (folder / "old").write_bytes(bytes(1 << 20))
        async with real_host() as host:
            undo = await fault.prepare((target,), host)
            await fault.inject((target,), undo, host)
            (folder / "old").unlink()
            seen = await look_until_seen(lambda: fault.confirm((), undo, host), host.clock, within_s=5.0)
            await fault.revert(undo, host)
        assert seen.seen, seen.what

    with with_disk(tmp_path) as target:
        asyncio.run(main(target))


def test_a_target_whose_folder_may_not_be_filled_is_refused_while_planning() -> None:
    (problem,) = DiskFull().problems((Target("store", "vector-store", None, (), "127.0.0.1:1"),))
    assert "when it is started as root" in problem


def test_the_machines_own_disk_is_never_filled(tmp_path: Path) -> None:
    async def main() -> None:
        data = {"folder": str(tmp_path), "limit_bytes": 1 << 50}
        target = Target("store", "vector-store", None, (), "127.0.0.1:1", handles={"data": data})
        async with real_host() as host:
            undo = await DiskFull().prepare((target,), host)
            with pytest.raises(CannotInject, match="not on a file system of its own"):
                await DiskFull().inject((target,), undo, host)
            await DiskFull().revert(undo, host)

    asyncio.run(main())
    assert [] == [*tmp_path.iterdir()]
