"""A harness that holds many faults at once, to be killed: real keeper, journal, leases, lock and watchdog, and no load.

It is forked from a process that has imported everything, and so is its watchdog: a kill costs no start of an
interpreter. On a pipe it says a word at every step of every fault, by which the killer chooses its instant.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from drill import Drill
from harm import process_state

from chaos.adapters.host import real_host
from chaos.faults.fault import CannotInject, Undo
from chaos.journal.recorder import Recorder
from chaos.plan.plan import PlannedFault
from chaos.ports import Host
from chaos.run import watchdog
from chaos.run.keeper import FaultKeeper
from chaos.run.lease import Lease, LeaseStore
from chaos.run.lock import hold
from chaos.stacks.local import LocalStack

STEPS = ("lease_granted", "fault_injected", "injected", "fault_reverted")
"""The words of every fault that the killer counts."""
DONE = "done"
_READY_WITHIN_S = 20.0

Say = Callable[..., None]


@dataclass
class Harness:
    """A forked harness: what it has said so far, and the number of its watchdog."""

    pid: int
    pipe: int
    run_dir: Path
    words: list[list[str]] = field(default_factory=list)
    _rest: bytes = b""

    def hear(self, steps: int, within_s: float) -> None:
        """Listen until so many steps were taken, it is done, or the time is up."""
        give_up = time.monotonic() + within_s
        while self.steps() < steps and not self.said(DONE):
            left = give_up - time.monotonic()
            if left <= 0 or not select.select([self.pipe], [], [], left)[0] or not self._read():
                return

    def kill(self) -> None:
        """SIGKILL, then read what it had said before."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while self._read():
            pass
        os.close(self.pipe)

    def steps(self) -> int:
        """How many steps were taken."""
        return sum(word[0] in STEPS for word in self.words)

    def said(self, word: str) -> list[list[str]]:
        """All of what it said that begins with this word."""
        return [said for said in self.words if said[0] == word]

    def guarded(self) -> bool:
        """Whether its watchdog is still there."""
        return any(process_state(int(pid)) not in {None, "Z"} for _, pid in self.said("watchdog"))

    def _read(self) -> bool:
        chunk = os.read(self.pipe, 65_536)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self.words += [json.loads(line) for line in lines]
        return bool(chunk)


def begin(drill: Drill, faults: Sequence[PlannedFault], run: str, hold_s: float) -> Harness:
    """Fork a harness that arms all, injects all at once, holds them for a while and reverts them."""
    heard, saying = os.pipe()
    run_dir = drill.runs / "kills" / run
    drill.temporary.mkdir(parents=True, exist_ok=True)
    pid = os.fork()
    if pid == 0:
        os.close(heard)
        _be_harness(drill, faults, run_dir, hold_s, saying)
    os.close(saying)
    return Harness(pid, heard, run_dir)


def _be_harness(drill: Drill, faults: Sequence[PlannedFault], run_dir: Path, hold_s: float, saying: int) -> NoReturn:
    def say(*words: str) -> None:
        os.write(saying, json.dumps(words).encode() + b"\n")

    try:
        os.setsid()
        tempfile.tempdir = str(drill.temporary)
        run_dir.mkdir(parents=True)
        kept = _fork_watchdog(drill.state / "leases", run_dir, say, saying)
        asyncio.run(_play(drill, faults, run_dir, hold_s, say))
        say(DONE)
        signal.pause()
        os.close(kept)
    except BaseException as failure:  # noqa: BLE001  a forked test process must not return into its parent's code
        say("failed", f"{type(failure).__name__}: {failure}")
    finally:
        os._exit(1)


def _fork_watchdog(leases: Path, run_dir: Path, say: Say, saying: int) -> int:
    """The real watchdog, listening on a pipe that ends with us; our end of it. Returns when it watches."""
    theirs, ours = os.pipe()
    ready, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for end in (ours, ready, saying):
            os.close(end)
        os.dup2(theirs, 0)
        os.dup2(telling, 1)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        words = ["--leases", str(leases), "--run", run_dir.name, "--log", str(run_dir / "watchdog.jsonl")]
        os._exit(watchdog.main(words))
    os.close(theirs)
    os.close(telling)
    say("watchdog", str(pid))
    if not select.select([ready], [], [], _READY_WITHIN_S)[0] or not os.read(ready, 64):
        raise TimeoutError("the watchdog does not watch")
    os.close(ready)
    return ours


@dataclass(frozen=True)
class _Spoken:
    """A journal whose records are also said aloud."""

    recorder: Recorder
    say: Say

    def record(self, kind: str, /, **fields: Any) -> object:
        told = self.recorder.record(kind, **fields)
        self.say(kind, str(fields.get("fault", "")), str(fields.get("why", "")))
        return told


async def _play(drill: Drill, faults: Sequence[PlannedFault], run_dir: Path, hold_s: float, say: Say) -> None:
    stack = LocalStack(drill.state / "stacks" / "bundled")
    async with real_host() as host:
        with hold(stack.lock, run_dir.name, run_dir, host.processes):
            journal = _Spoken(Recorder(run_dir, host.clock, host.clock.now()), say)
            leases = LeaseStore(drill.state / "leases", host.files)
            keeper = FaultKeeper(host, journal, leases, _lease_maker(host, stack, run_dir))
            armed = [fault for fault in faults if await _taken(keeper.arm(fault), fault, say)]
            await asyncio.gather(*(_injected(keeper, fault, say) for fault in armed))
            await asyncio.sleep(hold_s)
            await keeper.revert_all("stop")
            await keeper.settle()


async def _injected(keeper: FaultKeeper, fault: PlannedFault, say: Say) -> None:
    if await _taken(keeper.inject(fault, 0.0), fault, say):
        say("injected", fault.name)


async def _taken(step: Awaitable[None], fault: PlannedFault, say: Say) -> bool:
    """Whether the stack takes this fault beside the others."""
    try:
        await step
    except CannotInject as why:
        say("refused", fault.name, str(why))
        return False
    return True


def _lease_maker(host: Host, stack: LocalStack, run_dir: Path) -> Callable[[PlannedFault, Undo], Lease]:
    def made(fault: PlannedFault, undo: Undo) -> Lease:
        now, run, targets = host.clock.now(), run_dir.name, tuple(target.name for target in fault.targets)
        identity = (f"{run}-{fault.name}", run, str(run_dir), str(stack.folder), fault.name, fault.fault.kind)
        return Lease(*identity, targets, undo, host.clock.boot_id(), now, now + fault.lease_s)

    return made
