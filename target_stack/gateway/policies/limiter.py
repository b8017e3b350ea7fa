"""An adaptive limit on requests in flight, learnt from the time to first token (theory.md, section 3.1).

`aimd`: grows by one per limit's worth of good answers, and only while it is being used; shrinks by a factor when an
answer took longer than a fixed target, at most once per cool-down, because one congestion gives many slow answers.

`gradient`: compares each answer with the slow average of all of them. While first tokens come no later than they used
to, it grows by the square root of itself; the more they lag behind, the more it shrinks. It needs no target, but what
has been slow for long becomes the measure of all.

Whichever it is, an engine that says it is busy shrinks the limit.

`aimd` is the default by measurement (benchmarks/limiter.py, modelled engines of the bundled stack, one seed):

    goodput / p50 of the first token    1.0 x capacity    1.4 x            2.0 x            4 x slower for 10 s
    aimd                                97 %,  97 ms      101 %, 361 ms    102 %, 417 ms    106 %, 213 ms
    gradient                            91 %,  28 ms       91 %, 103 ms     91 %, 231 ms     48 %, 206 ms

`gradient` buys earlier first tokens with a tenth of the goodput, and takes a slow time for congestion. Both refuse in
0 ms at the 99th percentile up to twice the capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class LimiterSettings:
    """`minimum` equal to `maximum` makes it a fixed limit. `target_s` is for `aimd`; `tolerance`, `window` (answers)
    and `smoothing` are for `gradient`.
    """

    kind: Literal["aimd", "gradient"] = "aimd"
    initial: int = 24
    minimum: int = 8
    maximum: int = 64
    decrease: float = 0.9
    cooldown_s: float = 0.5
    target_s: float = 0.5
    tolerance: float = 1.5
    window: int = 600
    smoothing: float = 0.2


class LimiterPolicy(Protocol):
    """What callers need of a limiter."""

    @property
    def limit(self) -> int:
        """Requests that may be in flight at once."""
        ...

    def answered(self, now: float, first_token_s: float, in_flight: int) -> None:
        """A request got its first token after so long, with so many in flight."""
        ...

    def refused(self, now: float) -> None:
        """An engine said that it is too busy."""
        ...


class _Bounded:
    """The limit itself, kept in its bounds, and what both kinds do when an engine is busy."""

    def __init__(self, settings: LimiterSettings) -> None:
        self._settings = settings
        self._limit = float(settings.initial)
        self._quiet_until = float("-inf")

    @property
    def limit(self) -> int:
        """Requests that may be in flight at once."""
        return int(self._limit)

    def refused(self, now: float) -> None:
        """An engine said that it is too busy."""
        if now >= self._quiet_until:
            self._quiet_until = now + self._settings.cooldown_s
            self._move_to(self._limit * self._settings.decrease)

    def _move_to(self, limit: float) -> None:
        self._limit = min(float(self._settings.maximum), max(float(self._settings.minimum), limit))

    def _used(self, in_flight: int) -> bool:
        return in_flight * 2 >= self.limit


class AimdLimiter(_Bounded):
    """Additive increase, multiplicative decrease on a fixed target."""

    def answered(self, now: float, first_token_s: float, in_flight: int) -> None:
        """See the module."""
        if first_token_s > self._settings.target_s:
            self.refused(now)
        elif self._used(in_flight):
            self._move_to(self._limit + 1.0 / self._limit)


class GradientLimiter(_Bounded):
    """Follows the gradient between the usual and the present time to first token (Netflix's Gradient2, Envoy's
    headroom of the square root of the limit).
    """

    def __init__(self, settings: LimiterSettings) -> None:
        super().__init__(settings)
        self._usual_s: float | None = None

    def answered(self, now: float, first_token_s: float, in_flight: int) -> None:  # noqa: ARG002  # LimiterPolicy
        """See the module."""
        usual_s = first_token_s if self._usual_s is None else self._usual_s
        usual_s += (first_token_s - usual_s) * 2 / (self._settings.window + 1)
        if usual_s > 2 * first_token_s:  # a slow time is over: forget it faster than it was learnt
            usual_s *= 0.95
        self._usual_s = usual_s
        gradient = min(1.0, max(0.5, self._settings.tolerance * usual_s / max(first_token_s, 1e-9)))
        wanted = self._limit * gradient + math.sqrt(self._limit)
        if wanted < self._limit or self._used(in_flight):
            self._move_to(self._limit + self._settings.smoothing * (wanted - self._limit))


def make_limiter(settings: LimiterSettings) -> LimiterPolicy:
    """The limiter that the settings name."""
    return GradientLimiter(settings) if settings.kind == "gradient" else AimdLimiter(settings)
