"""The metrics document: the table of the run, and the requests as the semantic conventions for generative AI name them.

Conventions: gen_ai.client.* with their units and recommended buckets (gen-ai-metrics.md, version 1.41, which calls them
in development). One thing differs on purpose: times count from the intended send, as everywhere in a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from chaos.journal.tables import SampleTable
from chaos.openmetrics import Family, Point, Spread
from chaos.report.facts import Facts
from chaos.report.measured import measured
from chaos.report.otlp import Json, attributes, double, nanos, resource, scope
from chaos.verdict.latency import ttft_s
from chaos.verdict.statistics import Floats
from chaos.verdict.view import ANSWERED, Mask

OPERATIONS = {
    "chat": "chat",
    "rag": "chat",
    "agent": "invoke_agent",
    "tools": "execute_tool",
    "embeddings": "embeddings",
}
"""Route of a load to the convention's name of the operation."""

_PROVIDER = "openai"  # the flavour that the front door speaks, as the convention has it
_CUMULATIVE = 2
_DURATION_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_BETWEEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_TOKENS = tuple(float(4**n) for n in range(14))


def metrics_document(facts: Facts) -> Json:
    """An ExportMetricsServiceRequest."""
    ours = [_gauge(facts, family) for family in measured(facts) if family.points and family.kind == "gauge"]
    felt = [_histogram(facts, family) for family in requests(facts) if family.points]
    one_scope = {"scope": scope(), "metrics": [*ours, *felt]}
    return {"resourceMetrics": [{"resource": resource(facts), "scopeMetrics": [one_scope]}]}


def requests(facts: Facts) -> Iterator[Family]:
    """What the requests felt, one family a convention."""
    finals = facts.evidence.samples.finals
    loads = [
        (load.name, OPERATIONS.get(load.route, load.route), finals.load == load.name) for load in facts.experiment.loads
    ]
    for name, unit, told, spreads in (
        ("gen_ai.client.operation.duration", "s", "GenAI operation duration.", _durations),
        ("gen_ai.client.operation.time_to_first_chunk", "s", "Time to the first token that came.", _first),
        ("gen_ai.client.operation.time_per_output_chunk", "s", "Time between two tokens.", _between),
        ("gen_ai.client.token.usage", "{token}", "Number of output tokens used.", _tokens),
    ):
        points = tuple(
            spread
            for load, operation, rows in loads
            for spread in spreads(finals, rows, _named(load, operation))
            if sum(spread.counts)
        )
        yield Family(name, "histogram", told, points, unit)


def _named(load: str, operation: str) -> dict[str, str]:
    return {"gen_ai.operation.name": operation, "gen_ai.provider.name": _PROVIDER, "brownout.load": load}


def _durations(finals: SampleTable, rows: Mask, labels: dict[str, str]) -> Iterator[Spread]:
    """All that were sent; those without a whole answer carry why as `error.type`."""
    sent = rows & (finals.attempt > 0)
    took = finals.end_s - finals.intended_s
    whole = np.isin(finals.outcome, list(ANSWERED))
    yield Spread.of(labels, _DURATION_S, took[sent & whole].tolist())
    failed = sorted(zip(finals.why[sent & ~whole].tolist(), took[sent & ~whole].tolist(), strict=True))
    for why, group in groupby(failed, key=lambda each: each[0]):
        yield Spread.of({**labels, "error.type": why or "_OTHER"}, _DURATION_S, [took_s for _, took_s in group])


def _first(finals: SampleTable, rows: Mask, labels: dict[str, str]) -> Iterator[Spread]:
    waits: Floats = ttft_s(finals)[rows]
    yield Spread.of(labels, _FIRST_S, waits[np.isfinite(waits)].tolist())


def _between(finals: SampleTable, rows: Mask, labels: dict[str, str]) -> Iterator[Spread]:
    found = finals.pauses(rows)
    yield Spread.counted(labels, _BETWEEN_S, zip(found.value.tolist(), found.count.tolist(), strict=True))


def _tokens(finals: SampleTable, rows: Mask, labels: dict[str, str]) -> Iterator[Spread]:
    output = {**labels, "gen_ai.token.type": "output"}
    yield Spread.of(output, _TOKENS, finals.tokens[rows & (finals.tokens > 0)].tolist())


def otel_name(family: Family) -> str:
    """`brownout_fault_injected_timestamp_seconds` is `brownout.fault.injected_timestamp`, its unit said apart."""
    top, part, rest = family.name.removesuffix(f"_{family.unit}").split("_", 2)
    return f"{top}.{part}.{rest}"


def _gauge(facts: Facts, family: Family) -> Json:
    points = [
        {**_when(facts), "attributes": attributes(_own(point)), "asDouble": double(point.value)}
        for point in family.points
        if isinstance(point, Point)
    ]
    unit = {"seconds": "s"}.get(family.unit, "1")
    return {"name": otel_name(family), "description": family.help, "unit": unit, "gauge": {"dataPoints": points}}


def _own(point: Point) -> dict[str, str]:
    """Labels without those that the resource has."""
    return {key: value for key, value in point.labels.items() if key not in ("experiment", "run", "seed", "profile")}


def _histogram(facts: Facts, family: Family) -> Json:
    points = [
        {
            **_when(facts),
            "attributes": attributes(spread.labels),
            "count": str(sum(spread.counts)),
            "sum": spread.total,
            "bucketCounts": [str(count) for count in spread.counts],
            "explicitBounds": list(spread.bounds),
        }
        for spread in family.points
        if isinstance(spread, Spread)
    ]
    body = {"aggregationTemporality": _CUMULATIVE, "dataPoints": points}
    return {"name": family.name, "description": family.help, "unit": family.unit, "histogram": body}


def _when(facts: Facts) -> Json:
    records = facts.evidence.records
    ended = records[-1].t if records else None
    return {"startTimeUnixNano": nanos(facts, 0.0), "timeUnixNano": nanos(facts, ended)}
