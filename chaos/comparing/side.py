"""One side of a comparison: a run, or a series of runs, brought to what both can be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chaos.series.order import Series
from chaos.series.pool import Repeated, Tally, measured, pool
from chaos.series.told import held_in, typical
from chaos.verdict.outcome import FaultProof, Judged, Truth, Verdict, merge
from chaos.verdict.wording import say_found

Interval = tuple[float, float]
Kind = Literal["run", "series"]

_ONE_OBSERVATION = frozenset({"event", "recovery_time"})
"""Measures that see one thing happen in one run, however finely they time it."""


@dataclass(frozen=True)
class Measured:
    """What one side found for one hypothesis.

    `value` is inf for what never came. `trusted`: the preconditions of its run held. `single`: it rests on one
    observation, so its interval says nothing about how much another run would differ. `held` is there for a series,
    whose interval holds the spread between runs: the share of runs in which the hypothesis held lies in it.
    """

    truth: Truth
    told: str
    unit: str
    bound: Mapping[str, float]
    value: float | None
    interval: Interval | None
    n: int
    trusted: bool
    single: bool
    held: Interval | None


@dataclass(frozen=True)
class Side:
    """All that is compared. `text` is the experiment as it was run, `around` what it ran on, one line of text a fact;
    `during` is what users felt while the fault was in force, as the report tells it.
    """

    label: str
    kind: Kind
    experiment: str
    title: str
    text: str
    fingerprint: str
    verdict: Truth
    exit_code: int
    seed: int
    runs: int
    hypotheses: Mapping[str, Measured]
    requests: Mapping[str, int]
    faults: tuple[FaultProof, ...]
    around: Mapping[str, str]
    during: Mapping[str, str] = field(default_factory=dict)


def side_of_run(
    label: str, verdict: Verdict, text: str, environment: Mapping[str, Any], during: Mapping[str, str]
) -> Side:
    """One run."""
    trusted = all(check.held for check in verdict.preconditions)
    return Side(
        label=label,
        kind="run",
        experiment=verdict.experiment,
        title=verdict.title,
        text=text,
        fingerprint=verdict.fingerprint,
        verdict=verdict.verdict,
        exit_code=verdict.exit_code,
        seed=verdict.seed,
        runs=1,
        hypotheses={judged.name: _of_run(judged, trusted=trusted) for judged in verdict.hypotheses},
        requests=verdict.requests,
        faults=verdict.faults,
        around=_around(verdict.profile, verdict.weaknesses, environment),
        during=during,
    )


def side_of_series(label: str, series: Series, text: str, environment: Mapping[str, Any]) -> Side:
    """A series; its faults are those of its first run, its requests those of all of them."""
    pooled, verdicts = pool(series), [entry.verdict for entry in series.entries]
    names = dict.fromkeys(name for verdict in verdicts for name in verdict.requests)
    return Side(
        label=label,
        kind="series",
        experiment=series.order.experiment,
        title=series.order.title,
        text=text,
        fingerprint=verdicts[0].fingerprint if verdicts else "",
        verdict=pooled.verdict,
        exit_code=pooled.exit_code,
        seed=series.order.seed,
        runs=len(verdicts),
        hypotheses={one.name: _of_series(one) for one in pooled.hypotheses},
        requests={name: sum(verdict.requests.get(name, 0) for verdict in verdicts) for name in names},
        faults=verdicts[0].faults if verdicts else (),
        around=_around(series.order.profile, series.order.weaknesses, environment),
    )


def _of_run(judged: Judged, *, trusted: bool) -> Measured:
    interval = judged.interval
    return Measured(
        truth=judged.verdict,
        told="missing" if interval is None else say_found(judged.value, interval, judged.unit),
        unit=judged.unit,
        bound=judged.bound,
        value=measured(judged),
        interval=interval,
        n=judged.n,
        trusted=trusted,
        single=judged.measure in _ONE_OBSERVATION or (interval is not None and interval[0] == interval[1]),
        held=None,
    )


def _of_series(one: Repeated) -> Measured:
    """Its median run. Requests of all runs together would tell more, but runs that agree by luck would make it less
    than honest: a failure in every tenth run is not seen in eight.
    """
    return Measured(
        truth=_truth(one.tally),
        told=f"{typical(one)}; held in {held_in(one.tally)}",
        unit=one.unit,
        bound=one.bound,
        value=one.typical,
        interval=one.interval,
        n=len(one.values),
        trusted=bool(one.values),
        single=len(one.values) < 2,
        held=one.tally.interval(),
    )


def _truth(tally: Tally) -> Truth:
    counted: list[tuple[int, Truth]] = [
        (tally.upheld, "upheld"),
        (tally.refuted, "refuted"),
        (tally.inconclusive, "inconclusive"),
    ]
    return merge(truth for count, truth in counted if count)


def _around(profile: str, weaknesses: tuple[str, ...], environment: Mapping[str, Any]) -> dict[str, str]:
    facts = {"profile": profile, "weaknesses": ", ".join(weaknesses) or "none"}
    return facts | dict(_flat("", environment))


_NOT_COMPARED = frozenset({"version", "seed", "profile", "weaknesses"})
"""Of environment.json: what says nothing, or is told already."""


def _flat(above: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        path = f"{above} {name}".strip()
        if path in _NOT_COMPARED:
            continue
        if isinstance(value, Mapping):
            yield from _flat(path, value)
        else:
            yield path, _said(value)


def _said(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
