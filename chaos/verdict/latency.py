"""Waiting times as users felt them: from the intended send, with those who waited in vain counted as infinitely slow.

Leaving out the requests that never got a token would make a stack look faster the more it fails.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from chaos.journal.sketch import Pauses
from chaos.journal.tables import SampleTable
from chaos.verdict.differences import compare_waits
from chaos.verdict.naming import requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.shares import settle
from chaos.verdict.statistics import Floats, interval_ranks, quantile, quantile_interval, rank_of
from chaos.verdict.view import ANSWERED, Bound, Mask, View, among, decided

QuantileName = Literal["p50", "p90", "p95", "p99"]

_SHARES: dict[QuantileName, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def share_of(name: QuantileName) -> float:
    """`p99` is 0.99."""
    return _SHARES[name]


def ttft_s(samples: SampleTable) -> Floats:
    """Intended send to first token of each row; inf where none came."""
    waited = samples.first_token_s - samples.intended_s
    return np.where(np.isnan(waited), math.inf, waited)


def e2e_s(samples: SampleTable) -> Floats:
    """Intended send to last token of each row; inf where no whole answer came."""
    return np.where(among(samples.outcome, ANSWERED), samples.end_s - samples.intended_s, math.inf)


def estimate_wait(waits: Floats, view: View, load: str | None, name: QuantileName) -> Estimate:
    """A quantile of per-row waits over the requests of the view's window, or its factor against the control; it names
    the slowest.
    """
    known = decided(view.evidence.samples)
    if view.control is not None:
        return compare_waits((known, waits), view, view.control, load, share_of(name))
    rows = view.requests(load) & known
    found = estimate_quantile(waits[rows], name, view.bound)
    return replace(found, records=requests(view.evidence.samples, rows, worst=waits))


def estimate_quantile(
    values: Floats, name: QuantileName, bound: Bound, independent: int | None = None, noun: str = "requests"
) -> Estimate:
    """A quantile with its order-statistic interval; `independent` as in `quantile_interval`.

    What settles it: "quantile q <= bound" is the claim "a share of at least q is no slower than bound", so the
    share's rule applies.
    """
    if not len(values):
        return Estimate(None, missing=f"no {noun} in this window")
    q, units = share_of(name), independent or len(values)
    never = int(np.isinf(values).sum())
    limit = bound.at_most if bound.at_most is not None else bound.at_least
    in_time = float((values <= (math.inf if limit is None else limit)).mean())
    return Estimate(
        quantile(values, q),
        quantile_interval(values, q, independent),
        units,
        detail=f"{never} of {len(values)} waited in vain" if never else "",
        to_settle=settle(in_time, units, Bound(at_least=q), "requests"),
    )


def pauses(samples: SampleTable, rows: Mask) -> Pauses:
    """Pauses between tokens of these rows. A stream that broke after its first token ends in one that never ended."""
    broken = rows & ~np.isnan(samples.first_token_s) & ~among(samples.outcome, ANSWERED)
    return samples.pauses(rows).and_never(int(broken.sum()))


def longest_pauses(samples: SampleTable) -> Floats:
    """The longest pause of each row; inf where the stream broke after its first token."""
    broken = ~np.isnan(samples.first_token_s) & ~among(samples.outcome, ANSWERED)
    return np.where(broken, math.inf, samples.longest_pauses_s())


def estimate_pauses(found: Pauses, name: QuantileName, bound: Bound, streams: int) -> Estimate:
    """A quantile of counted pauses. Its interval counts streams, and reaches to the edges of the buckets of a sketch:
    no pause in them was shorter or longer.
    """
    n = len(found)
    if not n:
        return Estimate(None, missing="no streams with pauses in this window")
    q, units = share_of(name), min(n, streams)
    low, high = (None if rank is None else found.at(rank) for rank in interval_ranks(n, q, units))
    at = found.at(rank_of(n, q))
    never = int(found.count[np.isinf(found.value)].sum())
    interval = 0.0 if low is None else float(found.low[low]), math.inf if high is None else float(found.high[high])
    return Estimate(
        float(found.value[at]),
        interval,
        units,
        detail=f"{never} of {n} waited in vain" if never else "",
        to_settle=_settle_pauses(found, bound, q, units) if low is None or low != high else _SKETCHED,
    )


_SKETCHED = "the bound lies within the one percent to which pauses are known: another bound"


def _settle_pauses(found: Pauses, bound: Bound, q: float, units: int) -> str:
    limit = bound.at_most if bound.at_most is not None else bound.at_least
    in_time = int(found.count[found.value <= (math.inf if limit is None else limit)].sum()) / len(found)
    return settle(in_time, units, Bound(at_least=q), "requests")
