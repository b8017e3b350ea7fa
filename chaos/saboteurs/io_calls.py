"""Makes system calls on files below a folder fail, or take longer: those of some processes and all their children.

A companion traces them and stops each of their calls twice; most go by. When it is killed, they run on as if nothing
had been.

    processes ── call ──► stopped ── on a file below the folder, and drawn? ──► answered with an errno, or held a while
                                  └─ else ──────────────────────────────────► the kernel
"""

from __future__ import annotations

import contextlib
import heapq
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from chaos.saboteurs.family import harm_all
from chaos.saboteurs.life import HarmFailed, Orders, fork_companion
from chaos.saboteurs.ptrace import Call, Tracer, tracer_of, why_not
from chaos.saboteurs.syscalls import file_of, is_below, numbers

_TRACED = "traced"
_AHEAD_OF_OTHERS = -10


@dataclass(frozen=True)
class _Rule:
    """Which calls are hit, and how: `errno` 0 lets them pass after the delay."""

    folders: tuple[str, ...]
    numbers: frozenset[int]
    share: float
    errno: int
    delay_s: float

    @classmethod
    def of(cls, orders: Orders) -> Self:
        return cls(
            folders=tuple(map(os.path.realpath, orders["folders"])),
            numbers=numbers(tuple(orders["operations"])),
            share=float(orders["share"]),
            errno=int(orders.get("errno", 0)),
            delay_s=float(orders.get("delay_s", 0.0)),
        )

    def hits(self, call: Call, dice: random.Random) -> bool:
        if call.number not in self.numbers or (self.share < 1 and dice.random() >= self.share):
            return False
        path = file_of(call)
        return path is not None and any(is_below(path, folder) for folder in self.folders)


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """Orders: `processes` as [pid, start ticks], `folders`, `operations`, `share` of calls, `seed`, and `errno` or
    `delay_s`.
    """
    heard, saying = os.pipe()
    companion = fork_companion(lambda: _companion(orders, saying))
    os.close(saying)
    try:
        with os.fdopen(heard, encoding="utf-8") as ear:
            told = ear.readline().strip()
        if told != _TRACED:
            raise HarmFailed(told or "the tracer died without a word")
        yield
    finally:
        os.kill(companion, signal.SIGKILL)
        os.waitpid(companion, 0)


def _companion(orders: Orders, saying: int) -> None:
    with contextlib.suppress(PermissionError):  # everything its processes do waits for us
        os.setpriority(os.PRIO_PROCESS, 0, _AHEAD_OF_OTHERS)
    # Blocked, so that it is kept for sigtimedwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    tracer, rule = Tracer(), _Rule.of(orders)
    try:
        harm_all(orders["processes"], lambda pid: _seize(tracer, pid))
    except (HarmFailed, OSError) as problem:
        os.write(saying, str(problem).encode())
        return
    os.write(saying, _TRACED.encode())
    os.close(saying)
    with contextlib.suppress(ChildProcessError):
        _Watch(tracer, rule, random.Random(orders.get("seed"))).keep()


def _seize(tracer: Tracer, pid: int) -> None:
    """Its later children are ours by themselves. Raises HarmFailed."""
    if tracer_of(pid) == os.getpid():
        return
    try:
        tracer.seize(pid, calls=True)
    except PermissionError:
        raise HarmFailed(f"process {pid} cannot be traced: {why_not(pid)}") from None


class _Watch:
    """The loop of the tracer. Held threads wait in a heap by when they go on."""

    def __init__(self, tracer: Tracer, rule: _Rule, dice: random.Random) -> None:
        self._tracer, self._rule, self._dice = tracer, rule, dice
        self._held: list[tuple[float, int]] = []

    def keep(self) -> None:
        """Until nothing is traced any more: raises ChildProcessError."""
        while True:
            call = self._tracer.next_call(wait=not self._held)
            if call:
                self._judge(call)
            elif self._held:
                signal.sigtimedwait([signal.SIGCHLD], max(0.0, self._held[0][0] - time.monotonic()))
            self._let_go()

    def _judge(self, call: Call) -> None:
        if not self._rule.hits(call, self._dice):
            self._tracer.resume(call.tid)
        elif self._rule.delay_s:
            self._tracer.hold(call)
            heapq.heappush(self._held, (time.monotonic() + self._rule.delay_s, call.tid))
        else:
            self._tracer.fail(call, self._rule.errno)

    def _let_go(self) -> None:
        """Those that were held long enough."""
        while self._held and self._held[0][0] <= time.monotonic():
            self._tracer.resume(heapq.heappop(self._held)[1])
