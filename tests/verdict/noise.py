"""Synthetic traffic whose latency comes in waves: two arms that are alike, or one that is slower by a known factor.

The log-mean of log-normal waits follows AR(1) 0.98 from request to request, so that one request out of a hundred is
independent. With shared load four fifths of the wave's variance are the same in both arms. The sizes are those at which
a Mann-Whitney test calls two equal arms different in seven of ten (separate) and four of ten (shared) trials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa

from chaos.journal.evidence import Evidence
from chaos.journal.record import Sample
from chaos.journal.tables import SampleTable
from chaos.spec.model import Hypothesis
from chaos.verdict.judge import judge_hypothesis
from chaos.verdict.measures.ttft import Ttft
from chaos.verdict.outcome import Judged
from chaos.verdict.statistics import Floats
from chaos.verdict.windows import RunTimes, Window

REQUESTS = 5_000
RATE_PER_S = 50.0
PERSISTENCE = 0.98
WAVE, SPREAD = 0.34, 0.4
TYPICAL_S = 0.2
SHARED = 0.8

LoadKind = Literal["separate", "shared"]


@dataclass(frozen=True)
class Arms:
    """Waits of both arms in seconds; `kind` says whether they ran beside each other or one after the other."""

    kind: LoadKind
    window: Floats
    control: Floats

    def slower(self, factor: float) -> Arms:
        """The same two, the first slower by a factor."""
        return Arms(self.kind, self.window * factor, self.control)


def arms(kind: LoadKind, seed: int) -> Arms:
    """Two arms that are alike."""
    dice = np.random.default_rng([seed, kind == "shared"])
    common = SHARED if kind == "shared" else 0.0
    both = _wave(dice) * np.sqrt(common)
    window, control = (both + _wave(dice) * np.sqrt(1 - common) for _ in range(2))
    waits = [TYPICAL_S * np.exp(wave + SPREAD * dice.standard_normal(REQUESTS)) for wave in (window, control)]
    return Arms(kind, waits[0], waits[1])


def _wave(dice: np.random.Generator) -> Floats:
    """AR(1) with standard deviation WAVE, by its impulse response: what is 0.98 to the 600th is nothing."""
    response = PERSISTENCE ** np.arange(600)
    steps = dice.standard_normal(REQUESTS + len(response)) * WAVE * np.sqrt(1 - PERSISTENCE**2)
    size = 2 ** int(np.ceil(np.log2(len(steps) + len(response))))
    whole = np.fft.irfft(np.fft.rfft(steps, size) * np.fft.rfft(response, size))
    return np.asarray(whole[len(response) : len(response) + REQUESTS], dtype=np.float64)


def judged(pair: Arms, at_most: float = 1.1, quantile: Literal["p50", "p90", "p95", "p99"] = "p99") -> Judged:
    """What the judge says to `no slower than the control` about these waits, as samples of a run."""
    length = REQUESTS / RATE_PER_S
    windows = {
        "recovery": Window("recovery", ((length, 2 * length),)),
        "baseline": Window("baseline", ((0.0, length),)),
    }
    times = RunTimes(windows, 0.0, 2 * length, {}, {})
    beside = pair.kind == "shared"
    hypothesis = Hypothesis(
        "no slower",
        Ttft(quantile, load="canary" if beside else None),
        window="recovery",
        at_most=at_most,
        against=None if beside else "baseline",
        against_load="stable" if beside else None,
    )
    return judge_hypothesis(hypothesis, replace(_no_evidence(), samples=_samples(pair)), times)


@cache
def _no_evidence() -> Evidence:
    return Evidence.build()


def _samples(pair: Arms) -> SampleTable:
    """The requests of both arms with these waits; the other columns are the same in every trial."""
    table = _requests(pair.kind)
    columns = table.arrow
    first = pa.array(table.intended_s + np.concatenate((pair.window, pair.control)))
    for name in ("first_token_s", "end_s"):
        columns = columns.set_column(columns.column_names.index(name), name, first)
    return SampleTable.from_arrow(columns)


@cache
def _requests(kind: LoadKind) -> SampleTable:
    length, n = REQUESTS / RATE_PER_S, 2 * REQUESTS
    at = (np.arange(REQUESTS) + 0.5) / RATE_PER_S
    due = np.concatenate((at + length, at + length * (kind == "shared")))
    names = ("canary", "stable") if kind == "shared" else ("chat", "chat")
    rows = [_sample(names[number >= REQUESTS], number, float(due[number])) for number in range(n)]
    return SampleTable.build(rows)


def _sample(load: str, number: int, due: float) -> Sample:
    return Sample(
        load=load, request=number, attempt=1, final=True, intended_s=due, sent_s=due, first_token_s=due, end_s=due,
        outcome="good", why="", status=200, served_by="engine-a", degraded="", tokens=5, gaps_s=(), answer_ok=None,
        trace_id="",
    )  # fmt: skip


def mann_whitney_differs(pair: Arms) -> bool:
    """The rank test on raw requests at 98 %, as canary gates use it: what it says about the same data."""
    waits, n = np.concatenate((pair.window, pair.control)), REQUESTS
    ranks = np.empty(2 * n)
    ranks[np.argsort(waits)] = np.arange(1, 2 * n + 1)
    u = ranks[:n].sum() - n * (n + 1) / 2
    return bool(abs(u - n * n / 2) / np.sqrt(n * n * (2 * n + 1) / 12) > 2.326)


def independent_bootstrap_differs(pair: Arms, seed: int, resamples: int = 200) -> bool:
    """The bootstrap that draws single requests: whether the 95 % interval of the p99 ratio leaves out 1.

    The rank of a p99 in a drawn sample is drawn directly: the k-th smallest of n uniform draws has the distribution
    Beta(k, n - k + 1), so no sample has to be sorted.
    """
    dice = np.random.default_rng([seed, 7])
    k = int(np.ceil(0.99 * REQUESTS))
    drawn = [
        np.sort(waits)[np.floor(dice.beta(k, REQUESTS - k + 1, resamples) * REQUESTS).astype(np.int64)]
        for waits in (pair.window, pair.control)
    ]
    low, high = np.quantile(drawn[0] / drawn[1], (0.025, 0.975))
    return bool(low > 1 or high < 1)
