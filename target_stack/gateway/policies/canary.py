"""A canary gets a small share of the users, then larger ones, and is judged against the stable release all the while.

Who gets it is a hash, so a user stays where they are while the share stays, and is never taken out as it grows. Both
releases are judged over the same period, because load and time of day are then the same for both (ChAP: theory.md,
section 5). Three guards:

    errors         difference of the shares without a whole answer, by Newcombe's score interval
    ttft           ratio of the geometric means of the time to the first token
    output_length  ratio of the geometric means of the tokens of whole answers, longer or shorter

A guard breaches only when its whole confidence interval lies beyond the margin: on correlated latencies it is the
margin, not the test, that keeps false alarms away (theory.md, section 8). The k-th look spends 1 / (k (k + 1)) of the
allowed false alarms, which adds up to all of them however often one looks. A step up needs no guard even in doubt. A
canary that was rolled back does not come back by itself.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

Verdict = Literal["fine", "doubt", "breach"]
_NORMAL = NormalDist()


@dataclass(frozen=True)
class CanarySettings:
    """Shares and guards. A step lasts at least `step_s` and `step_requests` of the canary, at most `longest_step_s`;
    the first look comes after `minimum_requests`. Margins: a difference for errors, a factor for the others.
    """

    steps: tuple[float, ...] = (0.05, 0.25, 0.5, 1.0)
    step_s: float = 5.0
    step_requests: int = 30
    longest_step_s: float = 300.0
    minimum_requests: int = 12
    false_alarms: float = 0.01
    error_margin: float = 0.05
    ttft_factor: float = 1.5
    length_factor: float = 1.5
    length_guard: Literal["both_ways", "none"] = "both_ways"

    def __post_init__(self) -> None:
        """Raises ValueError for steps that do not grow to 1, or a factor that every canary would breach."""
        growing = all(a < b for a, b in zip(self.steps, self.steps[1:], strict=False))
        if not self.steps or not growing or self.steps[0] <= 0 or self.steps[-1] != 1:
            raise ValueError("policies.canary: steps must grow from above 0 to 1")
        if min(self.ttft_factor, self.length_factor) <= 1 or not 0 < self.false_alarms < 1:
            raise ValueError("policies.canary: factors must be above 1, false_alarms between 0 and 1")
        if self.minimum_requests < 2 or self.step_requests < self.minimum_requests:
            raise ValueError("policies.canary: step_requests must not be below minimum_requests, and that not below 2")


def gets_canary(key: str, canary: str, share: float) -> bool:
    """Whether the user or trace `key` gets the canary of this name. Another canary has other first users."""
    drawn = int.from_bytes(hashlib.blake2b(f"{canary}/{key}".encode(), digest_size=8).digest(), "big")
    return drawn < share * 2**64


@dataclass
class LogMoments:
    """Mean and variance of the logarithms of positive numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """One more number."""
        log = math.log(value)
        self.n += 1
        self.total += log
        self.squares += log * log

    @property
    def mean(self) -> float:
        """Logarithm of the geometric mean."""
        return self.total / self.n

    @property
    def variance(self) -> float:
        """Sample variance of the logarithms; at least 2 numbers."""
        return max(0.0, self.squares - self.total * self.mean) / (self.n - 1)


@dataclass(frozen=True)
class Seen:
    """One finished request. `tokens` of an answer that did not end whole say nothing about its length."""

    whole: bool
    ttft_s: float | None
    tokens: int


@dataclass
class Arm:
    """All that one release showed during one step."""

    requests: int = 0
    broken: int = 0
    ttft: LogMoments = field(default_factory=LogMoments)
    length: LogMoments = field(default_factory=LogMoments)

    def add(self, seen: Seen) -> None:
        """One more request."""
        self.requests += 1
        self.broken += not seen.whole
        if seen.ttft_s is not None:
            self.ttft.add(max(seen.ttft_s, 1e-4))
        if seen.whole:
            self.length.add(1 + seen.tokens)  # an empty answer has a logarithm too


@dataclass(frozen=True)
class Finding:
    """What one guard says. `value` is the difference or the ratio that was measured."""

    guard: str
    verdict: Verdict
    value: float


@dataclass(frozen=True)
class Decision:
    """What to do now; `reason` is the guard that breached, `value` what it measured."""

    verb: Literal["hold", "step", "finish", "roll_back"]
    reason: str = ""
    value: float = 0.0


HOLD = Decision("hold")


class CanaryWatch:
    """Judges one step. At a share of 1 there is nobody to compare with at the same time: then `reference` is the stable
    release of the step before, and time to first token is not judged, because the load may be another by now.
    """

    def __init__(self, settings: CanarySettings, step: int, now: float, reference: Arm | None = None) -> None:
        self._settings = settings
        self._step = step
        self._began = now
        self._looks = 0
        self._next_look = settings.minimum_requests
        self.canary = Arm()
        self.stable = reference or Arm()

    @property
    def share(self) -> float:
        """Part of the users who get the canary."""
        return self._settings.steps[self._step]

    def saw(self, seen: Seen, *, canary: bool) -> None:
        """A request of either release ended."""
        if canary:
            self.canary.add(seen)
        elif self.share < 1:
            self.stable.add(seen)

    def decide(self, now: float) -> Decision:
        """Call after each request and now and then."""
        lasted_s = now - self._began
        if self.canary.requests >= self._next_look and self._comparable():
            self._looks += 1
            self._next_look = math.ceil(self.canary.requests * 1.25)
            for finding in self.findings():
                if finding.verdict == "breach":
                    return Decision("roll_back", finding.guard, finding.value)
        if lasted_s >= self._settings.longest_step_s:
            return Decision("roll_back", "undecided")
        if lasted_s < self._settings.step_s or self.canary.requests < self._settings.step_requests:
            return HOLD
        if not self._comparable() or any(finding.verdict != "fine" for finding in self.findings()):
            return HOLD
        return Decision("finish" if self.share == 1 else "step")

    def findings(self) -> Iterator[Finding]:
        """What each guard says at this look. Both arms must have been seen."""
        settings = self._settings
        guards = 4  # errors, ttft, and length both ways
        alarms = settings.false_alarms / guards / max(1, self._looks * (self._looks + 1))
        yield _errors(self.canary, self.stable, settings.error_margin, alarms)
        if self.share < 1:
            yield _ratio("ttft", self.canary.ttft, self.stable.ttft, (0, settings.ttft_factor), alarms)
        if settings.length_guard == "both_ways":
            within = (1 / settings.length_factor, settings.length_factor)
            yield _ratio("output_length", self.canary.length, self.stable.length, within, alarms)

    def _comparable(self) -> bool:
        return self.stable.requests >= self._settings.minimum_requests


def _errors(canary: Arm, stable: Arm, margin: float, alarms: float) -> Finding:
    """Newcombe (1998), method 10: the difference of two shares from the Wilson intervals of each."""
    bad, good = canary.broken / canary.requests, stable.broken / stable.requests
    z = -_NORMAL.inv_cdf(alarms)
    least = bad - _wilson(canary.broken, canary.requests, z)[0]
    most = _wilson(stable.broken, stable.requests, z)[1] - good
    difference = bad - good
    low = difference - math.hypot(least, most)
    return Finding("errors", "breach" if low > margin else "doubt" if difference > margin else "fine", difference)


def _wilson(hits: int, n: int, z: float) -> tuple[float, float]:
    share = hits / n
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    centre, scale = share + z * z / (2 * n), 1 + z * z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _ratio(guard: str, canary: LogMoments, stable: LogMoments, within: tuple[float, float], alarms: float) -> Finding:
    """Welch's interval on logarithms; too few numbers are no doubt, because then the guard on errors speaks."""
    if min(canary.n, stable.n) < 2:
        return Finding(guard, "fine", 1.0)
    ratio = canary.mean - stable.mean
    reach = _t_quantile(alarms, canary.n - 1) * math.sqrt(canary.variance / canary.n + stable.variance / stable.n)
    low, high = (math.log(bound) if bound else -math.inf for bound in within)
    breach = ratio - reach > high or ratio + reach < low
    return Finding(guard, "breach" if breach else "fine" if low <= ratio <= high else "doubt", math.exp(ratio))


def _t_quantile(tail: float, degrees: int) -> float:
    """Student's quantile from the normal one (Abramowitz and Stegun, 26.7.5, two terms): a little too small only where
    degrees are few and the tail is tiny.
    """
    z = -_NORMAL.inv_cdf(tail)
    first = (z**3 + z) / (4 * degrees)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return z + first + second
