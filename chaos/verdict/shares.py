"""Shares of requests: which rows count, which of them are hits, and the estimate with its Wilson interval.

The interval treats requests as independent draws from the users of this window: it answers what the window would have
shown for as many other users, not what another outage would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chaos.journal.tables import SampleTable
from chaos.verdict.differences import compare_shares
from chaos.verdict.naming import requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.statistics import requests_to_settle, wilson
from chaos.verdict.view import ANSWERED, SERVED, Bound, Mask, View, among, decided, marked

Pick = Callable[[SampleTable], Mask]


@dataclass(frozen=True)
class Share:
    """Hits among the rows that count; `noun` names the rows that count, `wanted` says whether hits are good news."""

    hits: Pick
    counts: Pick
    noun: str
    wanted: bool = True


SUCCESS = Share(lambda s: among(s.outcome, SERVED), decided, "requests")
SHED = Share(lambda s: among(s.outcome, frozenset({"shed"})), decided, "requests", wanted=False)
RECALL = Share(
    lambda s: s.answer_ok == 1, lambda s: decided(s) & (s.answer_ok >= 0), "requests with a known right answer"
)


INTEGRITY = Share(
    lambda s: among(s.outcome, ANSWERED) | (s.why == "error_frame"),
    lambda s: decided(s) & ~np.isnan(s.first_token_s),
    "answers that began",
)


def degraded_share(reason: str | None) -> Share:
    """Answers that say they are degraded, among answers; a request without an answer says nothing about its answer."""
    return Share(lambda s: marked(s.degraded, reason), lambda s: among(s.outcome, ANSWERED), "answers", wanted=False)


def estimate_share(share: Share, view: View, load: str | None) -> Estimate:
    """The share over the view's window, or its difference to the control, or what was missing; it names the first
    requests that speak against the claim.
    """
    samples = view.evidence.samples
    if view.control is not None:
        numbers = share.counts(samples), share.hits(samples).astype(np.float64)
        return compare_shares(numbers, view, view.control, load, wanted=share.wanted)
    counted = view.requests(load) & share.counts(samples)
    n = int(counted.sum())
    if not n:
        return Estimate(None, missing=f"no {share.noun} in this window")
    hits = counted & share.hits(samples)
    against = counted & ~hits if view.bound.at_least is not None else hits
    found = share_estimate(int(hits.sum()), n, view.bound, share.noun)
    return replace(found, records=requests(samples, against))


def share_estimate(hits: int, n: int, bound: Bound, noun: str = "requests") -> Estimate:
    """Hits of n as an Estimate, with what would settle a doubt about the bound."""
    value = hits / n
    return Estimate(value, wilson(hits, n), n, detail=f"{hits} of {n} {noun}", to_settle=settle(value, n, bound, noun))


def settle(share: float, n: int, bound: Bound, noun: str) -> str:
    """How many more rows would settle the doubt, in one sentence."""
    limit = bound.at_least if bound.at_least is not None else bound.at_most
    needed = None if limit is None else requests_to_settle(share, limit)
    if needed is None:
        return "the value sits on the bound: no number of requests settles it, only another bound"
    more = max(1, needed - n)
    return f"about {more} more {noun} in this window ({n + more} in all): a higher rate or a longer window"
