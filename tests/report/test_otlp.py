"""The run for OpenTelemetry, decoded with the official messages: an unknown field or a wrong type fails."""

from __future__ import annotations

import base64
import json
import math
from functools import cache
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from chaos.journal.evidence import load_evidence
from chaos.report.facts import Facts
from chaos.report.otlp import to_lines
from chaos.report.otlp_metrics import metrics_document
from chaos.report.otlp_trace import MOST_EVENTS, trace_document
from tests.report.test_pages import evil, facts_of
from tests.verdict.story import CASES, JOURNALS, Story

IDS = ("traceId", "spanId", "parentSpanId")


def with_bytes(value: Any) -> Any:
    """OTLP writes ids in hexadecimal where the JSON of protocol buffers has base64; all else is the same."""
    if isinstance(value, dict):
        return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in IDS else with_bytes(v) for k, v in value.items()}
    return [with_bytes(each) for each in value] if isinstance(value, list) else value


def decoded(document: dict[str, Any], message: Any) -> Any:
    """By way of text, as a collector gets it."""
    return json_format.ParseDict(with_bytes(json.loads(to_lines(document))), message, ignore_unknown_fields=False)


def spans_of(facts: Facts) -> dict[str, Any]:
    read = decoded(trace_document(facts), ExportTraceServiceRequest())
    return {span.name: span for span in read.resource_spans[0].scope_spans[0].spans}


def metrics_of(facts: Facts) -> dict[str, Any]:
    read = decoded(metrics_document(facts), ExportMetricsServiceRequest())
    return {metric.name: metric for metric in read.resource_metrics[0].scope_metrics[0].metrics}


def attributes_of(thing: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in thing.attributes}


@cache
def stored(case: str) -> Facts:
    return facts_of(load_evidence(JOURNALS / case))


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_run_decodes_strictly_and_each_span_has_its_parent(case: str) -> None:
    spans = spans_of(stored(case))
    ids = {span.span_id for span in spans.values()}
    assert len(ids) == len(spans)
    assert [True] == [not s.parent_span_id for s in spans.values() if s.parent_span_id not in ids]
    assert all(s.start_time_unix_nano <= s.end_time_unix_nano for s in spans.values())
    assert metrics_of(stored(case))


def test_evil_names_are_only_text() -> None:
    assert spans_of(evil())
    assert metrics_of(evil())


def test_the_trace_is_run_windows_faults() -> None:
    spans = spans_of(stored("upheld"))
    root, fault = spans["retrieval/vector_store_outage"], spans["outage (process_kill)"]
    assert ["gate", "baseline", "fault", "recovery", "settled"] == [
        name for name, span in spans.items() if span.parent_span_id == root.span_id
    ]
    assert fault.parent_span_id == spans["fault"].span_id
    assert (fault.start_time_unix_nano, fault.end_time_unix_nano) == (1796115616 * 10**9, 1796115631 * 10**9)
    assert ["fault_confirmed", "fault_still", "fault_gone"] == [event.name for event in fault.events]
    assert ["breaker_opened"] == [event.name for event in spans["fault"].events]


def test_the_status_of_a_run_is_never_better_than_its_verdict() -> None:
    told = {case: spans_of(stored(case))["retrieval/vector_store_outage"] for case in CASES}
    assert {case: span.status.code for case, span in told.items() if span.status.code == 1} == {"upheld": 1}
    assert "refuted: 7 of 9" in told["refuted_pile_on"].status.message
    suites = {case: attributes_of(span)["test.suite.run.status"] for case, span in told.items()}
    assert suites["stopped"] == suites["gate_not_met"] == "aborted"
    assert suites["inconclusive_load_late"] == "inconclusive"


def test_a_fault_that_nobody_saw_is_a_span_in_error() -> None:
    assert spans_of(stored("inconclusive_fault_not_confirmed"))["outage (process_kill)"].status.code == 2
    never_gone = spans_of(stored("not_reverted"))
    assert "not seen to be gone" in never_gone["outage (process_kill)"].status.message
    assert never_gone["outage (process_kill)"].end_time_unix_nano == max(
        s.end_time_unix_nano for s in never_gone.values()
    )


def test_hypotheses_are_events_in_the_words_of_the_conventions() -> None:
    root = spans_of(stored("refuted_pile_on"))["retrieval/vector_store_outage"]
    judged = {a["test.case.name"]: a for a in map(attributes_of, root.events)}
    assert judged["users are served"]["test.case.result.status"] == "fail"
    assert judged["nothing left behind"]["test.case.result.status"] == "pass"
    assert judged["no slow failure"]["brownout.value"] == math.inf
    assert "brownout.value" not in judged["breaker opens"]


def test_a_chatty_stack_is_cut_short_and_the_rest_is_counted() -> None:
    told = {"source": "gateway", "name": "breaker_opened", "dependency": "tool"}
    story = Story(added=tuple((3.0 + n / 100, "event", {**told, "at": 3.0 + n / 100}) for n in range(200)))
    baseline = spans_of(facts_of(story.evidence()))["baseline"]
    assert (len(baseline.events), baseline.dropped_events_count) == (MOST_EVENTS, 200 - MOST_EVENTS)


def test_the_same_run_is_the_same_trace_and_another_run_another() -> None:
    one, again = trace_document(stored("upheld")), trace_document(stored("upheld"))
    assert one == again
    other = facts_of(Story(replaced={"run_started": {"run": "another"}}).evidence())
    assert {s.trace_id for s in spans_of(other).values()}.isdisjoint(
        s.trace_id for s in spans_of(stored("upheld")).values()
    )


def test_requests_are_histograms_of_the_generative_ai_conventions() -> None:
    metrics = metrics_of(stored("refuted_pile_on"))
    duration = metrics["gen_ai.client.operation.duration"]
    by_error = {attributes_of(p).get("error.type"): p.count for p in duration.histogram.data_points}
    assert (duration.unit, by_error) == ("s", {None: 855, "status_500": 145})
    (first,) = metrics["gen_ai.client.operation.time_to_first_chunk"].histogram.data_points
    assert (first.count, sum(first.bucket_counts), len(first.bucket_counts)) == (
        855,
        855,
        len(first.explicit_bounds) + 1,
    )
    (tokens,) = metrics["gen_ai.client.token.usage"].histogram.data_points
    assert attributes_of(tokens)["gen_ai.token.type"] == "output"
    assert tokens.sum == 5 * 855


def test_the_table_of_the_run_is_there_with_dots_and_units() -> None:
    metrics = metrics_of(stored("upheld"))
    assert metrics["brownout.fault.injected_timestamp"].unit == "s"
    states = {attributes_of(p)["verdict"]: p.as_double for p in metrics["brownout.run.verdict"].gauge.data_points}
    assert states == {"upheld": 1.0, "refuted": 0.0, "inconclusive": 0.0}
