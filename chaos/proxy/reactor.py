"""The one loop: sockets through epoll, timers to a tenth of a millisecond, work handed in by other threads.

asyncio is not used, for two measured reasons: it costs a proxy a third of its requests per second, and it rounds timers
to whole milliseconds, which is more than the error that a latency fault may have. A callback must not block.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import math
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable

from chaos.proxy.prompt import Precedence

READ, WRITE = select.EPOLLIN, select.EPOLLOUT
Handler = Callable[[int], None]
_FOREVER_S = 3600.0
# From here on sleeps end at microseconds; a longer one, of which the kernel may be late by a thousandth, ends before.
_APPROACH_S = 0.0015
_PUNCTUAL = 0.999
# The last moments before a timer are not slept but watched: as many as waking up has lately taken, and at most these.
_WATCH_MOST_S = 0.00015
_LEARN = 0.125
# So many rounds without a rest, and it is work that fills the time and not waiting.
_BUSY_ROUNDS = 16


class Timer:
    """A call at a monotonic time. `cancel` is cheap: the entry stays in the heap and is skipped."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None] | None) -> None:
        self.when = when
        self.call = call

    def cancel(self) -> None:
        """Never call."""
        self.call = None

    def __lt__(self, other: Timer) -> bool:
        return self.when < other.when


class Reactor:
    """Single-threaded but for `submit`, which any thread or signal handler may use.

    While it is `exact`, it takes precedence of other processes to wait, and gives it back when there is much to do.
    """

    def __init__(self, precedence: Precedence | None = None) -> None:
        self.exact = False
        self._precedence = precedence or Precedence(wanted=False)
        self._busy_rounds = 0
        self._watch_s = _WATCH_MOST_S / 2
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._fresh: set[int] = set()  # registered while events are handed out: older events are not theirs
        self._timers: list[Timer] = []
        self._submitted: deque[Callable[[], None]] = deque()
        self._running = False
        self._waker, self._woken = socket.socketpair()
        for end in (self._waker, self._woken):
            end.setblocking(False)
        self.register(self._woken.fileno(), READ, self._on_woken)

    now = staticmethod(time.monotonic)

    def register(self, fd: int, mask: int, handler: Handler) -> None:
        """Call `handler(events)` whenever `fd` is ready for `mask`; with mask 0 it is only remembered, see `modify`."""
        self._handlers[fd] = handler
        self._fresh.add(fd)
        if mask:
            self._epoll.register(fd, mask)

    def modify(self, fd: int, old: int, new: int) -> None:
        """Change what is waited for. With 0 nothing is, not even errors, which would be reported without end."""
        if old and new:
            self._epoll.modify(fd, new)
        elif new:
            self._epoll.register(fd, new)
        elif old:
            self._epoll.unregister(fd)

    def unregister(self, fd: int, mask: int) -> None:
        """Forget a descriptor, before it is closed."""
        self._handlers.pop(fd, None)
        if mask:
            self._epoll.unregister(fd)

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Call at a monotonic time, never before."""
        timer = Timer(when, call)
        heapq.heappush(self._timers, timer)
        return timer

    def submit(self, call: Callable[[], None]) -> None:
        """Call soon, in the loop's own thread."""
        self._submitted.append(call)
        with contextlib.suppress(BlockingIOError):  # then enough bytes are waiting to wake the loop
            self._waker.send(b"\0")

    def on_signal(self, number: int, call: Callable[[], None]) -> None:
        """Call soon after the signal. The wake-up descriptor ends the poll that the signal interrupted."""
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(number, lambda *_: self.submit(call))

    def stop(self) -> None:
        """Let `run` return after the current round."""
        self._running = False

    def run(self) -> None:
        """Serve until `stop`. An exception in a callback is logged and ends only that callback."""
        self._running = True
        while self._running:
            self.run_once(_FOREVER_S)

    def run_once(self, at_most_s: float) -> None:
        """Wait for the next events or timers, handle them."""
        wait_s = at_most_s
        while self._timers and self._timers[0].call is None:
            heapq.heappop(self._timers)
        if self._timers:
            wait_s = min(wait_s, self._timers[0].when - time.monotonic())
        self._fresh.clear()
        self._dispatch(self._poll(wait_s))
        self._run_timers()

    def _dispatch(self, ready: list[tuple[int, int]]) -> None:
        """Hand out events. A broken handler must not take every other connection down with it."""
        handlers, fresh = self._handlers, self._fresh
        for fd, events in ready:
            handler = handlers.get(fd)
            if handler is None or fd in fresh:
                continue
            try:
                handler(events)
            except Exception:
                logging.getLogger(__name__).exception("a handler failed")

    def _poll(self, wait_s: float) -> list[tuple[int, int]]:
        """Events now or within the time. An exact loop looks first whether it has to wait at all."""
        if not self.exact:
            self._precedence.give_back()
            return self._wait(wait_s)
        ready = self._epoll.poll(0)
        if ready or wait_s <= 0:
            self._busy_rounds += 1
            if self._busy_rounds > _BUSY_ROUNDS:
                self._precedence.give_back()
            return ready
        self._busy_rounds = 0
        self._precedence.take()
        return self._wait(wait_s)

    def _wait(self, wait_s: float) -> list[tuple[int, int]]:
        """epoll counts in milliseconds, select in microseconds: so select waits for epoll's descriptor at the last."""
        if not self._timers:
            return self._epoll.poll(wait_s)
        if wait_s > 2 * _APPROACH_S:
            return self._epoll.poll(math.floor((wait_s * _PUNCTUAL - _APPROACH_S) * 1e3) / 1e3)
        if wait_s > self._watch_s:
            wake_at = self._timers[0].when - self._watch_s
            if not select.select((self._epoll,), (), (), wait_s - self._watch_s)[0]:
                late_s = min(max(0.0, time.monotonic() - wake_at), _WATCH_MOST_S)
                self._watch_s += _LEARN * (late_s - self._watch_s)
        return self._epoll.poll(0)

    def _run_timers(self) -> None:
        now = time.monotonic()
        timers = self._timers
        while timers and timers[0].when <= now:
            call = heapq.heappop(timers).call
            if call is not None:
                _guarded(call)

    def _on_woken(self, _events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        while self._submitted:
            _guarded(self._submitted.popleft())

    def close(self) -> None:
        """Give the descriptors back. Handlers must have closed theirs."""
        for end in (self._waker, self._woken):
            end.close()
        self._epoll.close()


def _guarded(call: Callable[[], None]) -> None:
    """The same care for timers and submitted work."""
    try:
        call()
    except Exception:
        logging.getLogger(__name__).exception("a callback failed")
