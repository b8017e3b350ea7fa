"""Work of a hop from counters and traces, on runs whose amplification is known because we made it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Span
from chaos.journal.spans import SpanTable
from chaos.verdict.measures.retry_amplification import RetryAmplification
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View
from chaos.verdict.windows import times_of
from tests.verdict.story import INJECT, LOAD_END, REVERT, Story, experiment

PROMPT, OUTPUT = 40, 10
ENGINE = RetryAmplification(dependency="engine")
TOKENS = RetryAmplification(dependency="engine", work="tokens")
STORY = Story().evidence()


def calls_of(amplification, seed=1):
    """Start, attempt of every call: one a request, in the outage as many as make the amplification, spread by luck."""
    dice = random.Random(seed)
    for due in sorted(STORY.samples.finals.intended_s.tolist()):
        hurt = INJECT <= due < REVERT
        tries = int(amplification + dice.random()) if hurt else 1
        yield from ((due + 0.001 + 0.01 * attempt, attempt) for attempt in range(1, tries + 1))


def spans_of(calls, *, callees=True, took_s=0.3):
    for place, (start, attempt) in enumerate(calls):
        trace, span = f"{place:032x}", f"a{place:015x}"
        end = start + took_s
        yield Span(trace, span, "r", "gateway", "caller", "engine", "engine-a", start, end, "ok", attempt, None, None)
        if callees:
            where = (start + 0.001, end - 0.001)
            yield Span(trace, f"b{place:015x}", span, "engine-a", "callee", "chat", "", *where, "ok", 1, PROMPT, OUTPUT)


def scrapes(calls, *, took_s=0.3, stale_s=0.0):
    """The counters of gateway and engine twice a second, each telling what was so long ago."""
    starts, t = np.array([start for start, _ in calls]), 0.0
    while t <= LOAD_END + 4:
        age_s = t - stale_s - starts
        made = 100.0 + float((age_s >= 0).sum())
        done = np.clip((age_s - 0.1) / (took_s - 0.1), 0, 1).sum()
        series = 'gateway_upstream_calls_total{dependency="engine",kind="first",replica="engine-a"}'
        yield ReadingRow(t, "gateway", series, made)
        yield ReadingRow(t, "engine-a", "vllm:prompt_tokens_total", float(PROMPT * (age_s >= 0.1).sum()))
        yield ReadingRow(t, "engine-a", "vllm:generation_tokens_total", float(int(OUTPUT * done)))
        for service in ("gateway", "engine-a"):
            yield ReadingRow(t, service, "spans_last", made)
            yield ReadingRow(t, service, "spans_unread", 0.0)
        t += 0.5


def evidence(spans, readings):
    table = Evidence.build((), (), readings).readings
    return replace(STORY, readings=table, spans=SpanTable.build(spans))


def estimate(measure, found) -> Estimate:
    times = times_of(experiment(), found)
    return measure.estimate(View(found, times, times.windows["outage"]))


@pytest.mark.parametrize("measure", [ENGINE, TOKENS])
def test_both_sources_of_a_hop_tell_one_amplification(measure):
    calls = list(calls_of(3.0))
    found = estimate(measure, evidence(spans_of(calls), scrapes(calls)))
    assert found.value == pytest.approx(3.0, rel=0.05)
    assert found.missing is None
    assert "by counters, 3.0" in found.detail


@settings(max_examples=12, deadline=None)
@given(st.floats(0.3, 5.0), st.integers(0, 1000), st.floats(0.0, 0.2), st.sampled_from([ENGINE, TOKENS]))
def test_the_true_amplification_is_in_the_interval(amplification, seed, stale_s, measure):
    calls = list(calls_of(amplification, seed))
    found = estimate(measure, evidence(spans_of(calls), scrapes(calls, stale_s=stale_s)))
    hurt = sum(INJECT <= start < REVERT for start, _ in calls) / (20 * (REVERT - INJECT))
    assert found.missing is None
    assert found.interval[0] * 0.97 <= hurt <= found.interval[1] * 1.03


@settings(max_examples=12, deadline=None)
@given(
    st.floats(1.0, 4.0), st.floats(0.12, 1.0), st.booleans(), st.integers(0, 1000), st.sampled_from([ENGINE, TOKENS])
)
def test_a_source_that_loses_records_is_never_believed(amplification, lost, traces_lose, seed, measure):
    calls, dice = list(calls_of(amplification, seed)), random.Random(seed)
    some = [call for call in calls if not (INJECT <= call[0] < REVERT and dice.random() < lost)]
    whole, torn = (scrapes(calls), spans_of(some)) if traces_lose else (scrapes(some), spans_of(calls))
    found = estimate(measure, evidence(torn, whole))
    assert found.value is None
    assert "counters say" in (found.missing or "")


def test_a_contradiction_names_both_numbers_and_the_window():
    calls = list(calls_of(2.0))
    found = estimate(ENGINE, evidence(spans_of(calls), scrapes(calls[: len(calls) // 2])))
    assert found.missing.startswith("in `outage` counters say ") or found.missing.startswith(
        "in `baseline` counters say "
    )
    assert " calls, traces say " in found.missing


def test_the_requests_that_called_most_often_are_named():
    calls = [(start, attempt) for start, attempt in calls_of(2.0)]
    spans = list(spans_of(calls))
    often = [replace(s, trace_id="e" * 32) for s in spans if s.kind == "caller" and 20.0 < s.start_s < 20.3]
    rest = [s for s in spans if s.kind != "caller" or not 20.0 < s.start_s < 20.3]
    found = estimate(ENGINE, evidence([*often, *rest], scrapes(calls)))
    assert found.records[0] == f"trace {'e' * 32} ({len(often)} calls)"


def test_a_library_that_sends_again_unseen_is_seen_where_it_arrives():
    """One caller's span with two callees under it is two calls; a counter that has one is wrong."""
    calls = list(calls_of(1.0))
    spans = list(spans_of(calls))
    again = [replace(s, span_id=f"c{s.span_id}") for s in spans if s.kind == "callee"]
    found = estimate(ENGINE, evidence([*spans, *again], scrapes(calls)))
    assert "counters say" in (found.missing or "")


def test_a_scrape_that_took_long_may_tell_what_was_long_ago():
    """The clients of a busy machine stamp readings late; what they took tells how late at most."""
    calls = list(calls_of(3.0))
    readings = list(scrapes(calls, stale_s=0.9))
    assert "counters say" in (estimate(ENGINE, evidence(spans_of(calls), readings)).missing or "")
    slow = [ReadingRow(t, "gateway", "scrape_duration_seconds", 1.0) for t in sorted({row.t for row in readings})]
    found = estimate(ENGINE, evidence(spans_of(calls), [*readings, *slow]))
    assert found.value == pytest.approx(3.0, rel=0.1)


def test_a_stack_without_spans_is_judged_by_its_counters_and_says_so():
    calls = list(calls_of(2.0))
    readings = [row for row in scrapes(calls) if not row.series.startswith("spans_")]
    found = estimate(ENGINE, evidence((), readings))
    assert found.value == pytest.approx(2.0, rel=0.05)
    assert "(counters only)" in found.detail
    asked = estimate(replace(ENGINE, source="both"), evidence((), readings))
    assert asked.missing == "gateway keeps no spans"


def test_a_stack_without_counters_is_judged_by_its_traces_and_says_so():
    calls = list(calls_of(2.0))
    readings = [row for row in scrapes(calls) if row.series.startswith("spans_")]
    found = estimate(ENGINE, evidence(spans_of(calls), readings))
    assert found.value == pytest.approx(2.0, rel=0.05)
    assert "(traces only)" in found.detail


def test_spans_that_nobody_read_to_their_end_prove_nothing():
    calls = list(calls_of(1.0))
    early = [row for row in scrapes(calls) if row.series != "spans_unread" or row.t < INJECT]
    assert "not read to their end" in (estimate(ENGINE, evidence(spans_of(calls), early)).missing or "")
    missed = [*scrapes(calls), ReadingRow(20.0, "gateway", "spans_missed", 7.0)]
    assert "7 spans of gateway were forgotten" in (estimate(ENGINE, evidence(spans_of(calls), missed)).missing or "")


def test_one_source_may_be_asked_for_alone():
    calls = list(calls_of(2.0))
    torn = evidence(spans_of(calls[: len(calls) // 2]), scrapes(calls))
    assert estimate(replace(ENGINE, source="counters"), torn).value == pytest.approx(2.0, rel=0.05)
    assert estimate(replace(ENGINE, source="traces"), torn).value is not None


def test_a_restarted_engine_may_take_its_last_work_along():
    """Its counters fall to nothing and its open calls leave no span; that is no contradiction."""
    calls = list(calls_of(1.0))
    dead = INJECT + 5.1
    before: dict[str, float] = {}
    readings = []
    for row in scrapes(calls):
        mine = row.series.startswith("vllm:")
        if mine and row.t <= dead:
            before[row.series] = row.value
        readings.append(replace(row, value=row.value - before[row.series]) if mine and row.t > dead else row)
    spans = [s for s in spans_of(calls) if s.kind == "caller" or not s.start_s < dead < s.end_s]
    found = estimate(TOKENS, evidence(spans, readings))
    assert found.missing is None
    assert found.value == pytest.approx(1.0, rel=0.05)


def test_tokens_of_a_dependency_that_counts_none_are_told_by_traces_alone():
    calls = list(calls_of(1.0))
    readings = [row for row in scrapes(calls) if not row.series.startswith("vllm:")]
    found = estimate(TOKENS, evidence(spans_of(calls), readings))
    assert "(traces only)" in found.detail


def test_what_clients_send_has_one_source():
    found = estimate(replace(ENGINE, dependency="gateway", work="tokens"), evidence((), ()))
    assert "clients' own records" in (found.missing or "")
