"""Closed forms of metastable failures: when a loop of retries keeps itself going, how long a backlog takes, how long a
trigger must last. Pure arithmetic.

    lambda  first tries a second                  k     attempts a request may make, the first included
    mu      requests a second that can be served  beta  resends a first try earns under the retry budget
    T       how long a client waits               Q     requests that may wait, b  pause before a resend

The server is first come, first served, and goes on with work whose client has left. Sources: Bronson et al., Metastable
Failures in Distributed Systems (HotOS 2021) and Huang et al., Metastable Failures in the Wild (OSDI 2022) for the
states and loops; the formulas are fluid limits derived here, each beside its code, and hold in the simulation of
`chaos.tipping.model` (tests/soak/tipping.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

NEVER = math.inf
"""No trigger, however long, and no wait, however patient."""


@dataclass(frozen=True)
class Clients:
    """How requests come back: every attempt that has no answer after `timeout_s` is sent again `backoff_s` later."""

    timeout_s: float
    attempts: int
    backoff_s: float = 0.0
    budget: float | None = None

    @property
    def amplification(self) -> float:
        """Attempts a request makes when none of them is answered: min(k, 1 + beta)."""
        return amplification(self.attempts, self.budget)


def amplification(attempts: int, budget: float | None) -> float:
    """min(k, 1 + beta): either bound alone holds when every attempt fails."""
    return float(attempts) if budget is None else min(float(attempts), 1 + budget)


def critical_load(clients: Clients) -> float:
    """rho* as a share of capacity: above it the loop sustains itself, since lambda * min(k, 1 + beta) > mu.

    1 means that resends cannot do it at all.
    """
    return 1 / clients.amplification


def critical_backlog(capacity_per_s: float, clients: Clients, slots: int = 1) -> float:
    """Requests in line above which the last one is served too late: mu * T, less what is being worked on.

    A queue that holds no more cannot keep the stack down by resends: whoever leaves the line is still waited for. With
    s requests worked on at once each takes s / mu of its client's patience.
    """
    return capacity_per_s * max(0.0, clients.timeout_s - slots / capacity_per_s)


def recovery_s(backlog: float, capacity_per_s: float, timeout_s: float, offered_per_s: float) -> float:
    """max(0, Q0 - mu T) / (mu - lambda min(k, 1 + beta)): from a backlog Q0 until answers are in time again.

    `offered_per_s` is all attempts, resends included. The line shrinks by what capacity leaves after them; with nothing
    left it never does, and close to that the wait grows beyond bound (critical slowing): a slow recovery is a warning.
    """
    excess = max(0.0, backlog - capacity_per_s * timeout_s)
    spare = capacity_per_s - offered_per_s
    return 0.0 if not excess else excess / spare if spare > 1e-9 * capacity_per_s else NEVER


def tipping_length_of_cut_s(
    rate_per_s: float, capacity_per_s: float, left: float, clients: Clients, queue: float = math.inf
) -> float:
    """The shortest cut of capacity to the share `left` that the loop outlives; NEVER where none does.

    Let W(u) be the work sent until u less the work done until u + T: an attempt sent at u fails exactly when W(u) > 0.
    W falls short of 0 by c T at first (c = left * mu), grows by lambda - c and turns positive at u1 = c T /
    (lambda - c); whoever was sent then fails at u1 + T = lambda T / (lambda - c), so no shorter cut fails anybody.
    From then on resends arrive, and capacity returns; W peaks T before it does and falls by mu - lambda until the
    resends come, then by mu - 2 lambda, ... until N = ceil(mu / lambda) attempts a request exceed mu and it grows for
    ever. It need not stay positive all that time: see `_gap_s`.
    """
    rate, capacity, cut = rate_per_s, capacity_per_s, left * capacity_per_s
    if rate <= cut or not _sustains(rate, capacity, clients, queue):
        return NEVER
    first_fails = clients.timeout_s * rate / (rate - cut)
    return first_fails + _needed(rate, capacity, clients) / (capacity - cut)


def tipping_length_of_rise_s(
    rate_per_s: float, capacity_per_s: float, times: float, clients: Clients, queue: float = math.inf
) -> float:
    """The shortest rise of the load to `times` its rate that the loop outlives; NEVER where none does.

    As for a cut, but W grows by times * lambda - mu while the rise lasts, first fails somebody at u1 = mu T / (times *
    lambda - mu), and peaks when it ends; each second of it fails (times - 1) lambda requests more than one without.
    """
    rate, capacity = rate_per_s, capacity_per_s
    if rate * times <= capacity or not _sustains(rate, capacity, clients, queue):
        return NEVER
    first_fails = clients.timeout_s * capacity / (rate * times - capacity)
    return first_fails + _needed(rate, capacity, clients) / (_waves(rate, capacity) * rate * (times - 1))


def _sustains(rate: float, capacity: float, clients: Clients, queue: float) -> bool:
    return rate * clients.amplification >= capacity > rate and queue > critical_backlog(capacity, clients)


def _waves(rate: float, capacity: float) -> int:
    """Generations of resends until attempts exceed capacity, N - 1."""
    return max(1, math.ceil(capacity / rate - 1e-9) - 1)


def _needed(rate: float, capacity: float, clients: Clients) -> float:
    """Work that must be in excess when the first resends come, so that the loop closes.

    Without a gap it is what W loses until N attempts a request exceed capacity: (N - 1)(T + b)(mu - N lambda / 2). A
    gap of g seconds in which attempts succeed again saves (mu - (N - 1) lambda) g of it.
    """
    waves, period = _waves(rate, capacity), clients.timeout_s + clients.backoff_s
    whole = waves * period * (capacity - rate * (waves + 1) / 2)
    return whole - (capacity - waves * rate) * _gap_s(rate, capacity, clients, period)


def _gap_s(rate: float, capacity: float, clients: Clients, period: float) -> float:
    """How long attempts may succeed between two waves of resends without breaking the loop.

    The failures of one wave are the resends of the next, one period later; the loop holds when a wave is no smaller
    than the one before. For N = 2 the fixed point of that map is exact with two attempts, and an upper bound that is
    close with more; for N > 2 it is one step of the map. A budget hands out resends evenly, so there are no waves.
    """
    share, waves = rate / capacity, _waves(rate, capacity)
    if clients.budget is not None:
        return 0.0
    if waves == 1 and clients.attempts == 2:
        return period * (2 * share - 1) ** 2 / (3 * share * share - 3 * share + 1)
    if waves == 1:
        return period * share * (2 * share - 1) / (2 * share * share - 2 * share + 1)
    over = (waves + 1) * share - 1
    more = clients.attempts > waves + 1
    grown = over * (over + share) / (waves + 1) if more else over * over / waves
    return period * min(1.0, max(0.0, grown / (share * share)))
