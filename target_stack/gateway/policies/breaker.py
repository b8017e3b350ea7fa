"""A circuit breaker: stop asking a dependency that fails, ask again a little at a time.

    closed ──(failures in a row | failure ratio | slow ratio over the window)──► open
    open ──(jittered open time has passed, at the next call)──► half_open
    half_open ──(enough successes)──► closed        half_open ──(one failure, slow call or lost permit)──► open

A permit is the right to make one call. It is settled once: success, failure or cancel. A permit that nobody settles is
taken back after its lease and counts as a failure, so a crash between acquire and settle cannot freeze the breaker.
Results of permits from before the last change of state are ignored.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, Protocol

from target_stack.gateway.policies.breaker_window import make_window
from target_stack.gateway.policies.settings import BreakerSettings

State = Literal["closed", "half_open", "open"]
OnChange = Callable[[float, State], None]


class Permit(Protocol):
    """The right to make one call; settling it a second time does nothing."""

    def success(self, now: float, took_s: float) -> None:
        """The call worked and took so long."""
        ...

    def failure(self, now: float) -> None:
        """The call failed, timed out or was refused."""
        ...

    def cancel(self) -> None:
        """The caller went away: says nothing about the dependency."""
        ...


class BreakerPolicy(Protocol):
    """What callers need of a breaker."""

    @property
    def state(self) -> State:
        """The state as last decided; open turns half-open only when somebody asks to call."""
        ...

    def acquire(self, now: float) -> Permit | None:
        """A permit, or None: do not call."""
        ...

    def late_failure(self, now: float) -> None:
        """A call that had been settled as a success broke afterwards (a stream cut in the middle)."""
        ...


class _Ticket:
    """A permit of a Breaker."""

    __slots__ = ("_breaker", "_settled", "epoch", "granted_at")

    def __init__(self, breaker: Breaker, epoch: int, granted_at: float) -> None:
        self._breaker = breaker
        self._settled = False
        self.epoch = epoch
        self.granted_at = granted_at

    def success(self, now: float, took_s: float) -> None:
        self._settle(now, failed=False, slow=took_s > self._breaker.slow_call_s)

    def failure(self, now: float) -> None:
        self._settle(now, failed=True, slow=False)

    def cancel(self) -> None:
        if not self._settled:
            self._settled = True
            self._breaker.give_back(self)

    def _settle(self, now: float, *, failed: bool, slow: bool) -> None:
        if not self._settled:
            self._settled = True
            self._breaker.settle(now, self, failed=failed, slow=slow)


class Breaker:
    """The three-state breaker over a sliding window. `slow_call_s`: a longer success is a slow call."""

    def __init__(
        self,
        settings: BreakerSettings,
        *,
        slow_call_s: float,
        rng: random.Random,
        on_change: OnChange = lambda *_: None,
    ) -> None:
        self._settings = settings
        self.slow_call_s = slow_call_s
        self._rng = rng
        self._on_change = on_change
        self._state: State = "closed"
        self._epoch = 0
        self._open_until = 0.0
        self._window = make_window(settings)
        self._in_a_row = 0
        self._probes: set[_Ticket] = set()
        self._successes = 0

    @property
    def state(self) -> State:
        """See BreakerPolicy."""
        return self._state

    def acquire(self, now: float) -> Permit | None:
        """A permit, or None while open and while all half-open permits are out."""
        self._advance(now)
        if self._state == "open":
            return None
        ticket = _Ticket(self, self._epoch, now)
        if self._state == "half_open":
            if len(self._probes) >= self._settings.half_open_permits:
                return None
            self._probes.add(ticket)
        return ticket

    def late_failure(self, now: float) -> None:
        """Count a failure that no permit stands for any more."""
        self._advance(now)
        if self._state == "half_open":
            self._open(now)
        elif self._state == "closed":
            self._count(now, failed=True, slow=False)

    def settle(self, now: float, ticket: _Ticket, *, failed: bool, slow: bool) -> None:
        """Take the result of a permit; called by the permit."""
        self._advance(now)
        if ticket.epoch != self._epoch:
            return
        if self._state == "closed":
            self._count(now, failed=failed, slow=slow)
            return
        self._probes.discard(ticket)
        if failed or slow:
            self._open(now)
            return
        self._successes += 1
        if self._successes >= self._settings.half_open_successes:
            self._enter(now, "closed")

    def give_back(self, ticket: _Ticket) -> None:
        """A permit comes back unused; called by the permit."""
        self._probes.discard(ticket)

    def _advance(self, now: float) -> None:
        if self._state == "open" and now >= self._open_until:
            self._enter(now, "half_open")
        lease_s = self._settings.permit_lease_s
        if self._state == "half_open" and any(now - t.granted_at > lease_s for t in self._probes):
            self._open(now)

    def _count(self, now: float, *, failed: bool, slow: bool) -> None:
        self._window.add(now, failed=failed, slow=slow)
        self._in_a_row = self._in_a_row + 1 if failed else 0
        if self._must_open():
            self._open(now)

    def _must_open(self) -> bool:
        rules, recent = self._settings, self._window
        if self._in_a_row >= rules.consecutive_failures:
            return True
        if recent.calls < rules.minimum_calls:
            return False
        return recent.failed >= rules.failure_ratio * recent.calls or recent.slow >= rules.slow_ratio * recent.calls

    def _open(self, now: float) -> None:
        spread = self._settings.open_jitter
        # Without jitter, breakers that opened together would also probe together.
        self._open_until = now + self._settings.open_s * self._rng.uniform(1 - spread, 1 + spread)
        self._enter(now, "open")

    def _enter(self, now: float, state: State) -> None:
        self._state = state
        self._epoch += 1
        self._window.clear()
        self._in_a_row = self._successes = 0
        self._probes.clear()
        self._on_change(now, state)


class _FreePermit:
    """A permit nobody counts."""

    def success(self, now: float, took_s: float) -> None:
        """Nothing to count."""

    def failure(self, now: float) -> None:
        """Nothing to count."""

    def cancel(self) -> None:
        """Nothing to give back."""


class NoBreaker:
    """The missing breaker: always closed, always calls."""

    state: State = "closed"

    def acquire(self, now: float) -> Permit:  # noqa: ARG002  # the protocol's parameter
        """Always a permit."""
        return _FreePermit()

    def late_failure(self, now: float) -> None:
        """Nothing to count."""


def make_breaker(
    settings: BreakerSettings, *, limit_s: float, rng: random.Random, on_change: OnChange = lambda *_: None
) -> BreakerPolicy:
    """The breaker that the settings name, for calls with a time limit of `limit_s`."""
    if settings.kind == "none":
        return NoBreaker()
    return Breaker(settings, slow_call_s=settings.slow_share * limit_s, rng=rng, on_change=on_change)
