"""Is the share of bad outcomes still the usual one? Asked after every outcome, and wrong at most once in a hundred.

A fixed threshold over a sliding window is either slow or jumpy, and a test that is asked again and again finds
something sooner or later. Here evidence is a bet that cannot be expected to win while all is as usual:

    bet on "more bad outcomes than usual since some moment" ─► an outcome ─► the stake grows or shrinks by

        p1 / p0 for a bad one, (1 - p1) / (1 - p0) for another            Wald's likelihood ratio (1945)

The stake begins at 1 and is spread over the moments at which trouble can begin, half of it over those at which the plan
itself changes something, half evenly over all seconds; and over three sizes of trouble, of which the guard's own bound
is the smallest. As long as no outcome, given all before it, is bad with more than the usual probability, the whole is a
nonnegative supermartingale, so that it ever grows a hundredfold has at most one chance in a hundred however often one
looks (Ville 1939; Ramdas and others, Statistical Science 2023, section 3). Betting on many beginnings keeps a long
quiet baseline from using the evidence up, which would make a plain sequential test slow to notice (Shiryaev 1963).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

STOP_AT = 100.0
"""Growth of the stake at which it is no accident any more: one false stop in a hundred runs at most."""

_SIZES = (0.0, 1 / 3, 2 / 3)
"""Sizes of trouble, on the way from the bound (0) to every outcome bad (1), by equal factors."""


class ChangeWatch:
    """Watches one stream of outcomes; `evidence` is its stake: likelihood ratios averaged over bets."""

    def __init__(self, usual_bad: float, limit_bad: float, *, length_s: float, moments: Iterable[float] = ()) -> None:
        """`usual_bad` and `limit_bad` are shares, 0 < usual < limit < 1; `moments` are planned changes. Times are in
        seconds since the load began. Raises ValueError.
        """
        if not 0 < usual_bad < limit_bad < 1:
            raise ValueError(f"0 < {usual_bad} < {limit_bad} < 1 does not hold")
        self._bets = [_Bet(usual_bad, limit_bad ** (1 - size)) for size in _SIZES]
        self._waiting = _beginnings(length_s, tuple(moments))
        self._next = next(self._waiting, None)
        self._unspent = 1.0

    def see(self, t: float, *, bad: bool) -> None:
        """Take the next outcome, known at `t`."""
        share = 0.0
        while self._next is not None and self._next[0] <= t:
            share += self._next[1]
            self._next = next(self._waiting, None)
        self._unspent -= share
        for bet in self._bets:
            bet.see(share / len(self._bets), bad=bad)

    @property
    def evidence(self) -> float:
        """How many times the stake has grown; 1 at the start, and on average no more while all is as usual."""
        return max(0.0, self._unspent) + sum(bet.stake for bet in self._bets)

    @property
    def suspects(self) -> tuple[int, int]:
        """Outcomes, and bad ones among them, since trouble most likely began."""
        best = max(self._bets, key=lambda bet: bet.stake)
        return best.outcomes, best.bad


class _Bet:
    """One size of trouble, whenever it may have begun: every beginning grows by the same factor, so their sum does."""

    def __init__(self, usual: float, size: float) -> None:
        self._factors = {True: size / usual, False: (1 - size) / (1 - usual)}
        self.stake = 0.0
        self._since_worst = 0.0
        self.outcomes = self.bad = 0

    def see(self, placed: float, *, bad: bool) -> None:
        """Put `placed` more on it, then let the outcome decide."""
        self.stake = (self.stake + placed) * self._factors[bad]
        self._since_worst += math.log(self._factors[bad])  # Page's cumulative sum tells where trouble began
        self.outcomes, self.bad = self.outcomes + 1, self.bad + bad
        if self._since_worst <= 0:
            self._since_worst, self.outcomes, self.bad = 0.0, 0, 0


def _beginnings(length_s: float, moments: tuple[float, ...]) -> Iterator[tuple[float, float]]:
    """When trouble can begin, in order of time, each with its share of the stake; all shares add up to 1."""
    planned = sorted({0.0, *(moment for moment in moments if 0 <= moment < length_s)})
    seconds = range(max(1, math.ceil(length_s)))
    yield from sorted(
        [(moment, 0.5 / len(planned)) for moment in planned] + [(float(s), 0.5 / len(seconds)) for s in seconds]
    )
