"""Many runs of one experiment to one answer. Pure.

    any run refuted                                  ──► refuted
    fewer runs than asked, or too few of them decided ──► inconclusive, with what would settle it
    else                                             ──► upheld, with the interval

Each hypothesis is counted over the runs that decided it: upheld and refuted make its share with a Wilson interval, an
inconclusive run counts for neither side and is told apart. What one run measured is one observation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from chaos.series.chances import rarer_than, share_of_clusters
from chaos.series.order import Entry, Series
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.recall import Recall
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.stream_integrity import StreamIntegrity
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.outcome import INCONCLUSIVE, REFUTED, UPHELD, Judged, Truth, exit_code_of, worst
from chaos.verdict.statistics import quantile, quantile_interval, wilson

DECIDED_AT_LEAST = 0.8
"""Share of the runs that must be decided: more silence than that could hide what the others did not show."""
FEWEST_DECIDED = 2

COUNTS_REQUESTS = frozenset(
    measure.name for measure in (SuccessRatio, DegradedRatio, ShedRatio, Recall, StreamIntegrity)
)
"""Measures whose value is a share of n rows, so that rows of several runs may be added up."""


@dataclass(frozen=True)
class Tally:
    """Runs by verdict."""

    upheld: int
    refuted: int
    inconclusive: int

    @property
    def decided(self) -> int:
        """Those that say something."""
        return self.upheld + self.refuted

    def interval(self) -> tuple[float, float] | None:
        """Where the true share of upheld runs lies; None when none was decided."""
        return wilson(self.upheld, self.decided) if self.decided else None


@dataclass(frozen=True)
class Share:
    """Requests of all runs together."""

    value: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class Repeated:
    """One hypothesis over all runs.

    `values` holds one number a run that measured it, inf for what never came. `typical` is their median with its
    order-statistic interval (open sides: too few runs), `worst` the one farthest on the bad side of the bound, None
    where there is no single bad side. `together` is there where requests may be added up.
    """

    name: str
    measure: str
    unit: str
    window: str | None
    bound: Mapping[str, float]
    tally: Tally
    values: tuple[float, ...]
    typical: float | None
    interval: tuple[float, float] | None
    worst: float | None
    together: Share | None


@dataclass(frozen=True)
class Pooled:
    """The answer of a series."""

    verdict: Truth
    exit_code: int
    why: str
    to_settle: str | None
    tally: Tally
    hypotheses: tuple[Repeated, ...]


def pool(series: Series) -> Pooled:
    """All runs so far as one answer."""
    verdicts = [entry.verdict for entry in series.entries]
    tally = _tally(verdict.verdict for verdict in verdicts)
    truth, why, to_settle = _answer(series, tally)
    own = [v.exit_code for v in verdicts if v.exit_code not in (UPHELD, REFUTED, INCONCLUSIVE)]
    return Pooled(truth, worst([exit_code_of(truth), *own]), why, to_settle, tally, _hypotheses(series.entries))


def _tally(truths: Iterable[Truth]) -> Tally:
    found = list(truths)
    return Tally(found.count("upheld"), found.count("refuted"), found.count("inconclusive"))


def _answer(series: Series, tally: Tally) -> tuple[Truth, str, str | None]:
    order, first = series.order, series.first_refuted
    done = len(series.entries)
    if first:
        return "refuted", _says_refuted(first, tally), None
    if done < order.most:
        return "inconclusive", f"{done} of {order.most} runs done, none of them refuted", "`--resume` makes the others"
    needed = max(min(FEWEST_DECIDED, order.most), math.ceil(DECIDED_AT_LEAST * order.most - 1e-9))
    if tally.decided < needed:
        why = f"only {tally.decided} of {done} runs decided anything, at least {needed} must"
        return "inconclusive", why, "a series whose runs decide more; the page of each run says what it lacked"
    excluded = f"a failure in more than {rarer_than(tally.decided) * 100:.3g}% of runs is excluded with 95% confidence"
    return "upheld", f"none of {tally.decided} decided runs is refuted: {excluded}", None


def _says_refuted(first: Entry, tally: Tally) -> str:
    broken = ", ".join(h.name for h in first.verdict.hypotheses if h.verdict == "refuted")
    where = f"first run {first.number} (seed {first.seed})"
    return f"{tally.refuted} of {tally.decided} decided runs refuted, {where}: {broken}"


def _hypotheses(entries: tuple[Entry, ...]) -> tuple[Repeated, ...]:
    """In the order of the file; all runs of a series have the same ones."""
    names = dict.fromkeys(judged.name for entry in entries for judged in entry.verdict.hypotheses)
    return tuple(_repeated(name, entries) for name in names)


def _repeated(name: str, entries: tuple[Entry, ...]) -> Repeated:
    """Every run votes; only runs whose preconditions held say what they measured."""
    answers = [(entry, judged) for entry in entries for judged in entry.verdict.hypotheses if judged.name == name]
    trusted = [judged for entry, judged in answers if all(check.held for check in entry.verdict.preconditions)]
    about = answers[0][1]
    values = tuple(value for value in map(measured, trusted) if value is not None)
    found = np.array(values, dtype=np.float64)
    return Repeated(
        name=name,
        measure=about.measure,
        unit=about.unit,
        window=about.window,
        bound=about.bound,
        tally=_tally(judged.verdict for _, judged in answers),
        values=values,
        typical=quantile(found, 0.5) if values else None,
        interval=quantile_interval(found, 0.5) if values else None,
        worst=_worst(values, about.bound),
        together=_together(trusted) if about.measure in COUNTS_REQUESTS else None,
    )


def measured(judged: Judged) -> float | None:
    """What one run measured; inf for what never came while it was watched."""
    if judged.value is None and judged.interval is not None and math.isinf(judged.interval[1]):
        return math.inf
    return judged.value


def _worst(values: tuple[float, ...], bound: Mapping[str, float]) -> float | None:
    if not values or len(bound) != 1:
        return None
    return min(values) if "at_least" in bound else max(values)


def _together(answers: list[Judged]) -> Share | None:
    counted = [(round(j.value * j.n), j.n) for j in answers if j.n and j.value is not None]
    if not counted:
        return None
    hits, sizes = zip(*counted, strict=True)
    return Share(sum(hits) / sum(sizes), share_of_clusters(hits, sizes), sum(sizes))
