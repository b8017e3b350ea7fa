"""Packets on their way over a bad link: taken from the queue, kept until they are due, and let go.

One loop in one thread: it sleeps until a packet comes or the next one is due, whichever is first.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import itertools
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.saboteurs.netfilter.links import Answer, Link
from chaos.saboteurs.netfilter.queue import Queue

_IDLE_S = 1.0


class Traffic:
    """All packets that are on the link now."""

    def __init__(self, queue: Queue, link: Link, resend: Callable[[bytes], None]) -> None:
        """`resend` sends the copy of a packet that comes twice."""
        self._queue, self._link, self._resend = queue, link, resend
        self._waiting: set[int] = set()
        self._due: list[tuple[float, int, Answer]] = []
        self._order = itertools.count()

    def flow(self, stop: int) -> None:
        """Until `stop` becomes readable; then all that wait pass."""
        waited_for = [self._queue.fileno(), stop]
        while stop not in select.select(waited_for, [], [], self._patience_s())[0]:
            for packet in self._queue.packets():
                now = time.monotonic()
                self._waiting.add(packet.id)
                for answer in self._link.meet(now, packet):
                    self._take(answer, now)
            self._let_go(time.monotonic())
        self._let_go(float("inf"))

    def _patience_s(self) -> float:
        return max(0.0, self._due[0][0] - time.monotonic()) if self._due else _IDLE_S

    def _take(self, answer: Answer, now: float) -> None:
        if answer.at <= now:
            self._carry_out(answer)
        else:
            heapq.heappush(self._due, (answer.at, next(self._order), answer))

    def _let_go(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            self._carry_out(heapq.heappop(self._due)[2])

    def _carry_out(self, answer: Answer) -> None:
        if answer.packet.id not in self._waiting:
            return
        self._waiting.remove(answer.packet.id)
        if not answer.passes:
            self._queue.drop(answer.packet)
            return
        self._queue.let_pass(answer.packet, answer.data)
        if answer.twice:
            with contextlib.suppress(OSError):  # a copy that finds no way is a copy that was lost
                self._resend(answer.packet.data)


def wake_in_time() -> None:
    """All threads of this process are woken before ordinary ones and as near to the asked time as the kernel can, where
    that is allowed: on a busy machine waiting for a processor is most of a delay's error. All, since one that waits for
    a processor in the middle of the interpreter keeps the others waiting too.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1", encoding="ascii")
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def flowing(traffic: Traffic) -> Iterator[None]:
    """The loop runs beside us."""
    stopped, stop = os.pipe()
    loop = threading.Thread(target=traffic.flow, args=(stopped,), daemon=True)
    loop.start()
    try:
        yield
    finally:
        os.close(stop)
        loop.join()
        os.close(stopped)
