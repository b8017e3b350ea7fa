"""The watchdog reverts when a lease runs out or the harness is gone, and leaves when nothing is left."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.files import LocalFiles
from chaos.adapters.host import real_host
from chaos.adapters.processes import ProcFs
from chaos.faults.catalog import by_kind
from chaos.faults.noop import Noop
from chaos.ports import HttpReply
from chaos.run.lease import Lease, LeaseStore
from chaos.run.watchdog import GRACE_S, Log, Watchdog, due
from chaos.run.watchdog_process import WatchdogFailed, WatchdogProcess
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost

LEASE = Lease("l1", "run-1", "/runs/run-1", "bundled", "outage", "net_down", ("tools",), {}, "boot-1", 100.0, 130.0)


def test_a_lease_is_left_alone_while_the_harness_lives_and_time_is_left() -> None:
    assert due((LEASE,), "alive", 130.0, "boot-1") == ()


def test_a_lease_that_ran_out_is_due_after_a_grace_for_the_harness_own_revert() -> None:
    assert due((LEASE,), "alive", 130.0 + GRACE_S, "boot-1") == (LEASE,)


@pytest.mark.parametrize("harness", ["gone", "done"])
def test_every_lease_that_a_harness_leaves_is_due_at_once(harness) -> None:
    """One that is done with its run leaves only what it could not revert itself."""
    later = dataclasses.replace(LEASE, id="l2", lease_until=9000.0)
    assert due((LEASE, later), harness, 101.0, "boot-1") == (LEASE, later)


class Scene:
    """A watchdog in virtual time over one target behind a proxy."""

    def __init__(self, log: Path) -> None:
        self.world = InMemoryHost()
        self.tools = self.world.add_target("tools", "tool")
        self.store = LeaseStore(Path("/leases"), self.world.files)
        self.log = log
        self.dog = Watchdog("run-1", self.store, self.world.host, Log(log, self.world.host), by_kind)

    async def harm(self, *, lasts_s: float, run: str = "run-1") -> Lease:
        fault, now = by_kind["net_down"](), self.world.clock.now()
        undo = await fault.prepare((self.tools,), self.world.host)
        lease = dataclasses.replace(
            LEASE, id=f"{run}-outage", run=run, undo=undo, granted_at=now, lease_until=now + lasts_s
        )
        self.store.grant(lease)
        await fault.inject((self.tools,), undo, self.world.host)
        return lease

    async def serves(self) -> bool:
        return await self.world.host.network.round_trip(self.tools.via or "", "http", 1.0) is not None

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def scene(tmp_path: Path) -> Callable[[Callable[[Scene], Awaitable[None]]], None]:
    def play(part: Callable[[Scene], Awaitable[None]]) -> None:
        async def main() -> None:
            await part(Scene(tmp_path / "watchdog.jsonl"))

        run_virtual(main)

    return play


def test_a_run_that_reverts_by_itself_leaves_no_trace_of_the_watchdog(scene) -> None:
    async def part(s: Scene) -> None:
        watching = asyncio.create_task(s.dog.watch())
        await asyncio.sleep(5)
        s.dog.harness_is("done")
        assert await watching == 0
        assert s.lines() == []

    scene(part)


def test_a_lease_that_runs_out_is_reverted_although_the_harness_lives(scene) -> None:
    async def part(s: Scene) -> None:
        await s.harm(lasts_s=3)
        watching = asyncio.create_task(s.dog.watch())
        await asyncio.sleep(3)
        assert not await s.serves()
        await asyncio.sleep(0.5)
        assert await s.serves()
        assert [(line["step"], line["ok"]) for line in s.lines()] == [("revert", True), ("gone", True)]
        s.dog.harness_is("done")
        assert await watching == 0

    scene(part)


def test_the_death_of_the_harness_ends_its_faults_at_once_and_those_of_no_other_run(scene) -> None:
    async def part(s: Scene) -> None:
        await s.harm(lasts_s=3000)
        other = dataclasses.replace(LEASE, id="other", run="run-2", lease_until=9e9)
        s.store.grant(other)
        watching = asyncio.create_task(s.dog.watch())
        await asyncio.sleep(1)
        begun = s.world.clock.now()
        s.dog.harness_is("gone")
        assert await watching == 0
        assert s.world.clock.now() - begun < 0.01
        assert await s.serves()
        assert s.store.list().leases == (other,)

    scene(part)


def test_a_revert_that_keeps_failing_ends_with_exit_4_after_half_a_minute_and_the_lease_stays(scene) -> None:
    async def part(s: Scene) -> None:
        lease = await s.harm(lasts_s=3000)
        s.world.http.trouble["http://127.0.0.1:8474"] = HttpReply(500, "", {})
        s.dog.harness_is("gone")
        begun = s.world.clock.now()
        assert await s.dog.watch() == 4
        assert 25 < s.world.clock.now() - begun <= 30.1
        assert s.store.list().leases == (lease,)
        assert {line["ok"] for line in s.lines()} == {False}
        assert "curl" in str(s.lines()[-1]["why"])

    scene(part)


def test_done_after_gone_does_not_call_the_revert_off(scene) -> None:
    async def part(s: Scene) -> None:
        await s.harm(lasts_s=3000)
        s.dog.harness_is("gone")
        s.dog.harness_is("done")
        assert await s.dog.watch() == 0
        assert await s.serves()

    scene(part)


# The process itself.


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


def _eventually(holds: Callable[[], bool], within_s: float) -> float:
    """Seconds until it holds. Fails after `within_s`."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < within_s
        time.sleep(0.002)
    return time.monotonic() - begun


def _ended(pid: int) -> bool:
    return ProcFs().identify(pid) is None


def _is_frozen(pid: int) -> bool:
    return ProcFs().state(ProcFs().identify(pid)) == "T"


@contextmanager
def _harness(folder: Path, pid: int) -> Iterator[subprocess.Popen[str]]:
    """A process that does what a harness does: watchdog, lease, inject, and then waits; `pid` is frozen by then."""
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(folder), str(pid)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # a failed test must not wait for it


HARNESS = """
import asyncio, sys
from pathlib import Path
from chaos.adapters.host import real_host
from chaos.faults.process_stall import ProcessStall
from chaos.inventory import Target
from chaos.run.lease import Lease, LeaseStore
from chaos.run.watchdog_process import WatchdogProcess

async def main(folder, pid):
    target = Target("sleeper", "tool", None, (pid,), "127.0.0.1:1")
    dog = WatchdogProcess(folder / "leases", "run-1", folder / "watchdog.jsonl")
    await dog.start()
    async with real_host() as host:
        undo = await ProcessStall().prepare((target,), host)
        now = host.clock.now()
        lease = Lease("l1", "run-1", str(folder), "s", "freeze", "process_stall", ("sleeper",), undo,
                      host.clock.boot_id(), now, now + 600)
        LeaseStore(folder / "leases", host.files).grant(lease)
        await ProcessStall().inject((target,), undo, host)
        print(dog.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.system
def test_a_frozen_process_runs_again_within_two_seconds_after_the_harness_is_killed(tmp_path: Path, sleeper) -> None:
    with _harness(tmp_path, sleeper.pid) as harness:
        watchdog_pid = int(harness.stdout.readline())
        _eventually(lambda: _is_frozen(sleeper.pid), within_s=10)  # SIGSTOP acts when the process is next scheduled
        harness.kill()
        _eventually(lambda: not _is_frozen(sleeper.pid), within_s=2)
    _eventually(lambda: _ended(watchdog_pid), within_s=10)
    assert LeaseStore(tmp_path / "leases", LocalFiles()).list().leases == ()
    steps = [json.loads(line)["step"] for line in (tmp_path / "watchdog.jsonl").read_text().splitlines()]
    assert steps == ["revert", "gone"]


@pytest.mark.system
def test_signals_of_a_terminal_do_not_end_the_watchdog_and_sigterm_reverts(tmp_path: Path, sleeper) -> None:
    with _harness(tmp_path, sleeper.pid) as harness:
        watchdog_pid = int(harness.stdout.readline())
        _eventually(lambda: _is_frozen(sleeper.pid), within_s=10)
        os.kill(watchdog_pid, signal.SIGINT)
        os.kill(watchdog_pid, signal.SIGHUP)
        assert _is_frozen(sleeper.pid)
        os.kill(watchdog_pid, signal.SIGTERM)
        _eventually(lambda: not _is_frozen(sleeper.pid), within_s=2)


@pytest.mark.system
def test_a_watchdog_that_is_told_done_leaves_with_0_and_writes_no_log(tmp_path: Path) -> None:
    async def main() -> int | None:
        dog = WatchdogProcess(tmp_path / "leases", "run-1", tmp_path / "watchdog.jsonl")
        assert not dog.alive()
        await dog.start()
        assert dog.alive()
        assert os.getsid(dog.pid) == dog.pid
        return await dog.done(within_s=10)

    assert asyncio.run(main()) == 0
    assert not (tmp_path / "watchdog.jsonl").exists()


@pytest.mark.system
def test_a_watchdog_reverts_what_a_harness_that_is_done_could_not(tmp_path: Path) -> None:
    store, marker = LeaseStore(tmp_path / "leases", LocalFiles()), tmp_path / "marker"

    async def main() -> int | None:
        dog = WatchdogProcess(tmp_path / "leases", "run-1", tmp_path / "watchdog.jsonl")
        await dog.start()
        undo = {"mark": "m", "marker": str(marker)}
        async with real_host() as host:
            await Noop().inject((), undo, host)
        now = time.monotonic()
        boot = MonotonicClock().boot_id()
        store.grant(
            dataclasses.replace(LEASE, kind="noop", undo=undo, boot_id=boot, granted_at=now, lease_until=now + 600)
        )
        assert marker.exists()
        return await dog.done(within_s=10)

    assert asyncio.run(main()) == 0
    assert not marker.exists()
    assert store.list().leases == ()


@pytest.mark.system
def test_a_watchdog_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WatchdogFailed, match="did not begin to watch"):
        asyncio.run(WatchdogProcess(tmp_path, "run-1", tmp_path / "log").start())
