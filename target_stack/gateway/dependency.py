"""A call to something that is not an engine, guarded: breaker, bound on calls in flight, deadline, count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeVar

from target_stack.gateway.call import Call
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.telemetry import STATE_NUMBERS, Telemetry

T = TypeVar("T")


class CallFailed(Exception):
    """Raised by the work given to `Dependency.call` when the dependency failed it; the message says how in one word.
    `retry_after_s` is the pause that the dependency asked for.
    """

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        """Keep what was seen."""
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class DependencyDown(Exception):
    """No result. `reason` is `breaker_open`, `too_many_calls`, `timeout`, or the word of CallFailed."""

    def __init__(self, dependency: str, reason: str, retry_after_s: float = 0.0) -> None:
        """Keep who and why."""
        super().__init__(f"{dependency}: {reason}")
        self.dependency = dependency
        self.reason = reason
        self.retry_after_s = retry_after_s


class Dependency:
    """One dependency with its breaker. `name` is the role's name in events and metrics; `limit_s` the time limit of a
    call.
    """

    def __init__(self, name: str, settings: PolicySettings, limit_s: float, telemetry: Telemetry) -> None:
        self.name = name
        self.limit_s = limit_s
        self._telemetry = telemetry
        self._most = settings.side_calls
        self._in_flight = 0
        telemetry.metrics.expect_calls(name, name)
        self._breaker = telemetry.breaker(settings.breaker, limit_s, dependency=name)

    def breaker_states(self) -> Iterator[tuple[Mapping[str, str], float]]:
        """Samples of gateway_breaker_state."""
        yield {"dependency": self.name, "replica": self.name}, STATE_NUMBERS[self._breaker.state]

    async def call(self, call: Call, work: Callable[[Call], Awaitable[T]], attempt: int = 1) -> T:
        """Do the work before the call's deadline; it gets the call as this hop sees it. Raises DependencyDown, at once
        when the breaker is open.
        """
        clock = self._telemetry.clock
        started = clock()
        permit = self._breaker.acquire(started)
        if permit is None:
            raise DependencyDown(self.name, "breaker_open")
        if self._in_flight >= self._most:
            permit.cancel()
            raise DependencyDown(self.name, "too_many_calls")
        self._telemetry.metrics.upstream_calls.add(self.name, self.name, "first" if attempt == 1 else "retry")
        self._in_flight += 1
        hop = self._telemetry.hop(call.trace, self.name, self.name, attempt)
        try:
            async with asyncio.timeout_at(call.deadline.within(started, self.limit_s).at):
                result = await work(call.part_of(hop))
        except TimeoutError as problem:
            permit.failure(clock())
            hop.end("timeout")
            raise DependencyDown(self.name, "timeout") from problem
        except CallFailed as problem:
            permit.failure(clock())
            hop.end(str(problem))
            raise DependencyDown(self.name, str(problem), problem.retry_after_s) from problem
        else:
            permit.success(clock(), clock() - started)
            hop.end("ok")
            return result
        finally:
            self._in_flight -= 1
            permit.cancel()  # only an unsettled permit, whose caller went away, is still there to cancel
            hop.end("cancelled")  # likewise

    def resent(self, call: Call) -> None:
        """The client below sends a call of ours again by itself."""
        self._telemetry.metrics.upstream_calls.add(self.name, self.name, "hop_resend")
        if call.hop:
            call.hop.again()
