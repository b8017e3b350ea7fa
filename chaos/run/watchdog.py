r"""The process that outlives the harness: it reverts when a lease runs out or the harness is gone.

    harness ── stdin (a pipe) ──► watchdog ──► leases of this run
       │ "done\n"   the run is over: revert what it could not, and leave
       │ end of file without it, or SIGTERM: revert everything now

The kernel closes the pipe however the harness dies, so its death is seen at once and cannot be missed. Started as
`python -m chaos.run.watchdog --leases DIR --run RUN --log FILE`; says `ready` when it watches. Exit 0: nothing is left;
4: a lease could not be reverted and is still there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from chaos.adapters.host import real_host
from chaos.faults.catalog import by_kind
from chaos.faults.fault import Fault
from chaos.ports import Host
from chaos.run.lease import Lease, LeaseStore
from chaos.run.recovery import Recovered, revert_lease

GRACE_S = 0.2
LOOK_EVERY_S = 0.1
PATIENCE_S = 30.0
NOTHING_LEFT, NOT_REVERTED = 0, 4
READY = "ready"
DONE = b"done\n"

Harness = Literal["alive", "done", "gone"]


def due(leases: tuple[Lease, ...], harness: Harness, now: float, boot_id: str) -> tuple[Lease, ...]:
    """Which leases to revert now: those that ran out, and all once the harness is gone or done with its run.

    What a harness that is done leaves is what it could not revert itself. The grace leaves one that is alive the time
    to do so.
    """
    if harness != "alive":
        return leases
    return tuple(lease for lease in leases if lease.ended(now - GRACE_S, boot_id))


@dataclass
class Log:
    """What the watchdog did, one JSON line each, synced. The file appears with the first line."""

    path: Path
    host: Host

    def write(self, lease: Lease, step: str, ok: bool, why: str) -> None:
        """Append one line. A full disk must not keep a fault from being reverted."""
        record = {"t_mono": self.host.clock.now(), "lease": lease.id, "fault": lease.fault, "step": step, "ok": ok}
        line = json.dumps({**record, "why": why}) + "\n"
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        except OSError:
            return
        finally:
            os.close(handle)


@dataclass
class Watchdog:
    """Watches the leases of one run. `harness` is set from outside, followed by `wake.set()`."""

    run: str
    store: LeaseStore
    host: Host
    log: Log
    faults_by_kind: Mapping[str, type[Fault]]
    harness: Harness = "alive"
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _reverts: dict[str, asyncio.Task[Recovered]] = field(default_factory=dict)

    def harness_is(self, harness: Harness) -> None:
        """Tell what became of the harness; `gone` is final."""
        if self.harness != "gone":
            self.harness = harness
        self.wake.set()

    async def watch(self) -> int:
        """Until nothing is left to watch; the exit code."""
        while True:
            leases = self.store.list(run=self.run).leases
            for lease in due(leases, self.harness, self.host.clock.now(), self.host.clock.boot_id()):
                if lease.id not in self._reverts:
                    self._reverts[lease.id] = asyncio.create_task(self._revert(lease))
            given_up = [lease for lease in leases if self._has_given_up(lease)]
            if self.harness != "alive" and len(given_up) == len(leases):
                await asyncio.gather(*self._reverts.values())
                self.store.sweep(self.run)
                return NOT_REVERTED if given_up else NOTHING_LEFT
            await self._pause()

    async def _revert(self, lease: Lease) -> Recovered:
        def tell(step: str, ok: bool, why: str) -> None:
            self.log.write(lease, step, ok, why)

        result = await revert_lease(
            lease, self.store, self.host, self.faults_by_kind, by="watchdog", patience_s=PATIENCE_S, tell=tell
        )
        self.wake.set()
        return result

    def _has_given_up(self, lease: Lease) -> bool:
        task = self._reverts.get(lease.id)
        return task is not None and task.done() and not task.result().ok

    async def _pause(self) -> None:
        self.wake.clear()
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await self.wake.wait()
        except TimeoutError:
            return


def _listen(watchdog: Watchdog, pipe: int) -> None:
    """Read what the harness says; the end of its pipe is the end of the harness."""
    loop, said = asyncio.get_running_loop(), bytearray()

    def on_readable() -> None:
        chunk = os.read(pipe, 4096)
        said.extend(chunk)
        if DONE in said:
            watchdog.harness_is("done")
        if not chunk:
            loop.remove_reader(pipe)
            if DONE not in said:
                watchdog.harness_is("gone")

    loop.add_reader(pipe, on_readable)


async def _main(arguments: argparse.Namespace) -> int:
    async with real_host() as host:
        store, log = LeaseStore(arguments.leases, host.files), Log(arguments.log, host)
        watchdog = Watchdog(arguments.run, store, host, log, by_kind)
        _listen(watchdog, sys.stdin.fileno())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, watchdog.harness_is, "gone")
        os.write(sys.stdout.fileno(), READY.encode() + b"\n")
        return await watchdog.watch()


def main(words: Any = None) -> int:
    """The process. Signals that a terminal sends are for the harness, not for us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    parser = argparse.ArgumentParser(
        prog="python -m chaos.run.watchdog", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--leases", type=Path, required=True, help="folder of the leases")
    parser.add_argument("--run", required=True, help="id of the run whose leases are watched")
    parser.add_argument("--log", type=Path, required=True, help="file that tells what had to be done")
    return asyncio.run(_main(parser.parse_args(words)))


if __name__ == "__main__":
    raise SystemExit(main())
