"""Every measure finds the truth that was put into synthetic evidence, and says what is missing instead of guessing."""

import math
from dataclasses import replace

import numpy as np
import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Sample
from chaos.settings import settings_of
from chaos.spec.catalog import Catalog
from chaos.units import Duration
from chaos.verdict.measures.catalog import MEASURES, by_name
from chaos.verdict.measures.cross_talk import CrossTalk
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.e2e import E2e
from chaos.verdict.measures.event import Event
from chaos.verdict.measures.itl import Itl
from chaos.verdict.measures.load_lateness import LoadLateness
from chaos.verdict.measures.measure import Estimator
from chaos.verdict.measures.metric import Metric
from chaos.verdict.measures.output_length import OutputLength
from chaos.verdict.measures.recall import Recall
from chaos.verdict.measures.recovery_time import RecoveryTime, from_slices
from chaos.verdict.measures.requests_running import RequestsRunning
from chaos.verdict.measures.retry_amplification import RetryAmplification
from chaos.verdict.measures.shed_latency import ShedLatency
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.stream_integrity import StreamIntegrity
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.measures.ttft import Ttft
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import Bound, View
from chaos.verdict.windows import times_of
from tests.verdict.story import INJECT, LOAD_END, REVERT, Behaviour, Story, experiment


def estimate(measure: Estimator, story: Story | Evidence, window: str | None = "outage", **bound: float) -> Estimate:
    evidence = story if isinstance(story, Evidence) else story.evidence()
    times = times_of(experiment(), evidence)
    return measure.estimate(View(evidence, times, times.windows[window] if window else None, Bound(**bound)))


def changed(story: Story, **fields: object) -> Evidence:
    """The story with fields of every sample in the outage replaced."""
    evidence = story.evidence()
    samples = [replace(s, **fields) if INJECT <= s.intended_s < REVERT else s for s in story.samples()]  # type: ignore[arg-type]  # fields are test literals
    return replace(evidence, samples=Evidence.build((), samples).samples)


HURT = Story(hurt=Behaviour(fail_every=10, degraded="no_retrieval", ttft_s=0.2, calls=3))


def test_success_counts_degraded_answers_and_failures() -> None:
    found = estimate(SuccessRatio(), HURT, at_least=0.99)
    assert (found.value, found.n) == (0.9, 300)


def test_late_and_abandoned_are_no_success_and_indeterminate_is_nothing() -> None:
    assert estimate(SuccessRatio(), changed(HURT, outcome="late")).value == 0.0
    assert estimate(SuccessRatio(), changed(HURT, outcome="abandoned")).value == 0.0
    assert estimate(SuccessRatio(), changed(HURT, outcome="indeterminate")).missing == "no requests in this window"


def test_another_load_is_another_number() -> None:
    assert estimate(SuccessRatio(load="batch"), HURT).missing is not None


def test_degraded_is_counted_among_answers() -> None:
    found = estimate(DegradedRatio(reason="no_retrieval"), HURT)
    assert (found.value, found.n) == (1.0, 270)
    assert estimate(DegradedRatio(reason="canned"), HURT).value == 0.0
    assert estimate(DegradedRatio(), changed(HURT, outcome="degraded", degraded="canned, fallback_model")).value == 1.0


def test_shed_is_shed() -> None:
    assert (estimate(ShedRatio(), HURT).value, estimate(ShedRatio(), changed(HURT, outcome="shed")).value) == (0.0, 1.0)


def test_a_refusal_takes_from_the_intended_send_to_its_end() -> None:
    refused = changed(HURT, outcome="shed")
    found = estimate(ShedLatency(quantile="p90"), refused, at_most=60.0)
    waits = [s.end_s - s.intended_s for s in HURT.samples() if INJECT <= s.intended_s < REVERT]
    assert found.value == pytest.approx(sorted(waits)[270], abs=0.2)
    assert found.n == 300


def test_without_a_refusal_there_is_no_time_to_tell() -> None:
    found = estimate(ShedLatency(), HURT, at_most=0.1)
    assert (found.value, found.missing) == (None, "no refused requests in this window")


def test_an_answer_that_began_must_end_whole_or_with_an_error_frame() -> None:
    told = changed(HURT, outcome="failed", why="error_frame")
    silent = changed(HURT, outcome="failed", why="no_finish_reason")
    assert [estimate(StreamIntegrity(), story).value for story in (told, silent)] == [1.0, 0.0]
    assert estimate(StreamIntegrity(), changed(HURT, outcome="late", why="")).value == 1.0
    assert (
        estimate(StreamIntegrity(), changed(HURT, first_token_s=None)).missing == "no answers that began in this window"
    )


def test_output_length_is_that_of_whole_answers_relative_to_the_baseline() -> None:
    assert estimate(OutputLength(), HURT).value == 1.0
    longer = estimate(OutputLength(), changed(HURT, tokens=15))
    assert longer.value == pytest.approx(3.0)
    assert longer.interval == (pytest.approx(3.0), pytest.approx(3.0))
    assert "15.0 tokens an answer, 5.0 in the baseline" in longer.detail
    assert estimate(OutputLength(), changed(HURT, outcome="failed")).missing is not None


def test_a_failed_request_with_a_known_answer_is_a_wrong_answer() -> None:
    story = Story(usual=Behaviour(fail_every=4))
    assert estimate(Recall(), story, "settled").value == 0.75


def test_one_answer_with_the_marker_of_another_request_is_one_leak_that_names_both() -> None:
    story = Story()
    samples = [replace(each, leaked="") for each in story.samples()]
    inside = next(n for n, each in enumerate(samples) if each.intended_s > INJECT)
    mine, other = f"{inside:032x}", "c0ffee" * 5 + "00"
    samples[inside] = replace(samples[inside], leaked=f"m-{other[:12]}")
    samples[0] = replace(samples[0], trace_id=other)
    found = estimate(CrossTalk(), replace(story.evidence(), samples=Evidence.build((), samples).samples))
    assert (found.value, found.n) == (1.0, 300)
    assert found.detail == f"1 of 300 answers; the answer of {mine} holds the marker of {other}"


def test_a_leak_in_a_stream_that_broke_and_in_a_first_try_counts_too() -> None:
    samples = [replace(each, leaked="") for each in Story().samples()]
    inside = next(n for n, each in enumerate(samples) if each.intended_s > INJECT)
    broken = {"outcome": "failed", "first_token_s": None, "leaked": "m-" + "c0ffee" * 2}
    samples[inside] = replace(samples[inside], **broken)  # type: ignore[arg-type]  # fields are test literals
    samples.append(replace(samples[inside + 1], final=False, leaked="m-" + "deca" * 3))
    found = estimate(CrossTalk(), replace(Story().evidence(), samples=Evidence.build((), samples).samples))
    assert (found.value, len(found.records)) == (2.0, 2)


def test_a_series_names_itself_and_when_it_was_read() -> None:
    (first, *_) = estimate(RequestsRunning(), Story(running_at_end=3.0), "settled").records
    assert first.startswith("engine-a vllm:num_requests_running")
    assert first.endswith("the last 3")


def test_without_marked_requests_nobody_can_tell_whose_words_they_were() -> None:
    assert "marked: true" in (estimate(CrossTalk(), Story()).missing or "")
    assert estimate(CrossTalk(), changed(Story(), leaked="")).value == 0.0


def test_ttft_counts_from_the_intended_send() -> None:
    found = estimate(Ttft("p50"), Story(hurt=Behaviour(ttft_s=0.2)), at_most=1.0)
    assert found.value == pytest.approx(0.22, abs=0.02)


def test_who_saw_no_token_waited_forever() -> None:
    assert math.isinf(estimate(Ttft("p95"), HURT).value or 0)
    assert (estimate(Ttft("p50"), HURT).value or 9) < 0.3


def test_e2e_of_a_broken_answer_is_endless_even_with_a_first_token() -> None:
    evidence = changed(HURT, outcome="failed", first_token_s=1.0)
    assert math.isinf(estimate(E2e("p50"), evidence).value or 0)
    assert estimate(E2e("p50"), Story()).value == pytest.approx(0.15, abs=0.02)


def test_a_stream_that_broke_off_is_an_endless_pause() -> None:
    assert pytest.approx(estimate(Itl("p99"), Story()).value, rel=0.01) == 0.02
    assert math.isinf(estimate(Itl("p90"), changed(HURT, outcome="failed", first_token_s=INJECT)).value or 0)


def test_the_interval_of_a_pause_reaches_to_the_edges_of_its_bucket() -> None:
    low, high = estimate(Itl("p50"), Story()).interval or (0, 0)
    assert low < 0.02 < high < 1.021 * low


def test_a_bound_within_the_one_percent_that_a_pause_is_known_to_is_settled_by_no_more_requests() -> None:
    told = estimate(Itl("p50"), Story()).to_settle or ""
    assert "within the one percent" in told


def test_pauses_of_one_stream_are_no_independent_samples() -> None:
    assert estimate(Itl("p50"), Story()).n == 300


def test_lateness_is_the_harness_own() -> None:
    assert pytest.approx(estimate(LoadLateness(), Story(lateness_s=0.03)).value) == 0.03


def test_calls_that_triple_are_an_amplification_of_three() -> None:
    found = estimate(RetryAmplification(dependency="vector-store"), HURT)
    assert found.value == pytest.approx(3.0, rel=0.02)
    assert found.interval is not None
    assert found.interval[0] <= 3.0 <= found.interval[1] + 0.05


def test_a_dependency_that_is_spared_has_no_amplification() -> None:
    assert pytest.approx(estimate(RetryAmplification(dependency="vector-store"), Story()).value, abs=0.05) == 0.0


def test_a_dependency_nobody_counts_is_missing() -> None:
    assert "no series" in (estimate(RetryAmplification(dependency="embedder"), Story()).missing or "")


def test_a_counter_that_never_moves_proves_nothing() -> None:
    still = replace(Story(), usual=Behaviour(calls=0))
    assert "never moved" in (estimate(RetryAmplification(dependency="vector-store"), still).missing or "")


def test_a_counter_that_stopped_being_read_is_missing() -> None:
    evidence = Story().evidence()
    short = [row for row in Story().readings() if row.t < INJECT + 5]
    evidence = replace(evidence, readings=Evidence.build((), (), short).readings)
    assert "not read" in (estimate(RetryAmplification(dependency="vector-store"), evidence).missing or "")


def test_clients_that_resend_amplify_the_front_door() -> None:
    def resent() -> list[Sample]:
        rows = []
        for sample in Story().samples():
            hurt = INJECT <= sample.intended_s < REVERT
            rows += [replace(sample, final=False), replace(sample, attempt=2)] if hurt else [sample]
        return rows

    evidence = replace(Story().evidence(), samples=Evidence.build((), resent()).samples)
    assert estimate(RetryAmplification(dependency="gateway"), evidence).value == 2.0


@pytest.mark.parametrize("scar_s", [0.0, 3.0, 9.0])
def test_recovery_time_is_the_length_of_the_scar(scar_s: float) -> None:
    story = Story(hurt=Behaviour(fail_every=2), scar_s=scar_s)
    assert scar_s == estimate(RecoveryTime(), story, None).value


def test_a_slow_start_after_the_outage_is_found_by_ttft() -> None:
    assert estimate(RecoveryTime(of="ttft"), Story(hurt=Behaviour(ttft_s=2.0), scar_s=5.0), None).value == 5.0


def test_what_counts_as_back_is_the_users_to_say() -> None:
    """A wait that stays within the asked margin is back at once; a share knows no such margin."""
    slower = Story(hurt=Behaviour(ttft_s=0.4), scar_s=5.0)
    assert estimate(RecoveryTime(of="ttft"), slower, None).value == 5.0
    assert estimate(RecoveryTime(of="ttft", margin=Duration(0.5)), slower, None).value == 0.0
    failing = Story(hurt=Behaviour(fail_every=2), scar_s=5.0)
    assert estimate(RecoveryTime(margin=Duration(0.5)), failing, None).value == 5.0


def test_answers_without_retrieval_after_the_revert_are_found_by_their_mark() -> None:
    story = Story(hurt=Behaviour(degraded="no_retrieval"), scar_s=4.0)
    assert estimate(RecoveryTime(of="degraded_ratio", reason="no_retrieval"), story, None).value == 4.0


def test_a_stack_that_never_comes_back_has_only_a_lower_limit() -> None:
    found = estimate(RecoveryTime(), Story(hurt=Behaviour(fail_every=2), scar_s=99.0), None)
    assert (None, (20.0, math.inf)) == (found.value, found.interval)


def test_a_baseline_that_was_bad_already_is_no_steady_state() -> None:
    story = Story(usual=Behaviour(fail_every=2), hurt=Behaviour(fail_every=2))
    assert "no steady state" in (estimate(RecoveryTime(), story, None).missing or "")


@pytest.mark.parametrize(
    ("slices", "value", "interval"),
    [
        ("+++++", 0.0, (0.0, 0.0)),
        ("--+++", 2.0, (1.0, 2.0)),
        ("+-+-+++", 4.0, (3.0, 4.0)),
        ("-+++--+++", 1.0, (0.0, 1.0)),
        ("-+++---+++", 7.0, (6.0, 7.0)),
        ("-----", None, (5.0, math.inf)),
        ("---++", None, (3.0, math.inf)),
        ("+++---", None, (6.0, math.inf)),
        ("", None, (0.0, math.inf)),
    ],
)
def test_recovery_needs_three_good_seconds_and_no_relapse(
    slices: str, value: float | None, interval: tuple[float, float]
) -> None:
    found = from_slices(np.array([c == "+" for c in slices], dtype=np.bool_))
    assert (value, interval) == (found.value, found.interval)


def test_what_gets_better_is_slow_and_says_how_long_it_still_needs() -> None:
    short_of = np.linspace(0.8, 0.2, 31)
    found = from_slices(np.zeros(31, dtype=np.bool_), short_of)
    assert (found.value, found.interval) == (None, (31.0, math.inf))
    assert "SLOW" in found.detail
    assert "about 11s more" in found.detail
    assert found.to_settle == "a recovery window that is 11s longer"


@pytest.mark.parametrize("level", [0.7, math.inf])
def test_what_is_flat_is_stuck_as_far_as_users_can_tell(level: float) -> None:
    found = from_slices(np.zeros(30, dtype=np.bool_), np.full(30, level))
    assert "STUCK" in found.detail
    assert "`metastability`" in (found.to_settle or "")


def test_one_bad_second_of_the_baseline_does_not_make_a_collapse_look_like_a_recovery() -> None:
    """Noise widens the margin only so far."""
    story = Story(hurt=Behaviour(fail_every=2), scar_s=100.0)
    bad = [replace(s, outcome="failed") if 3 <= s.intended_s < 4 and s.request % 3 else s for s in story.samples()]
    evidence = replace(story.evidence(), samples=Evidence.build((), bad).samples)
    found = estimate(RecoveryTime(), evidence, None)
    assert (None, math.inf) == (found.value, (found.interval or (0, 0))[1])


def opened(**settings: str) -> Event:
    return Event(**{"event": "breaker_opened", "within": Duration(3), "of": "outage.start", **settings})  # type: ignore[arg-type]  # test literals


def test_an_event_is_timed_by_the_stack_own_clock() -> None:
    assert pytest.approx(estimate(opened(), Story(), None).value) == 0.8
    assert pytest.approx(estimate(opened(event="breaker_closed", of="outage.end"), Story(), None).value) == 2.1


def test_an_event_of_another_dependency_or_before_the_anchor_does_not_count() -> None:
    assert estimate(opened(dependency="embedder"), Story(), None).value is None
    assert estimate(opened(of="outage.end"), Story(), None).value is None


def test_an_absent_event_is_as_late_as_somebody_listened() -> None:
    found = estimate(opened(), Story(events=False), None)
    assert (None, (LOAD_END + 1.5 - INJECT, math.inf)) == (found.value, found.interval)


def test_an_absent_event_proves_nothing_when_nobody_listened() -> None:
    evidence = replace(Story(events=False).evidence(), readings=Evidence.build().readings)
    assert "nobody listened" in (estimate(opened(), evidence, None).missing or "")


def test_events_that_were_lost_may_have_been_the_one() -> None:
    rows = [*Story(events=False).readings(), ReadingRow(INJECT + 2, "gateway", "events_missed", 3.0)]
    evidence = replace(Story(events=False).evidence(), readings=Evidence.build((), (), rows).readings)
    assert (2.0, math.inf) == estimate(opened(), evidence, None).interval


def closing(by_s: float) -> Evidence:
    """A breaker closes so long before the revert is recorded as done."""
    event = (REVERT, "event", {"source": "gateway", "at": REVERT - by_s, "name": "breaker_closed"})
    return Story(events=False, added=(event,)).evidence()


def until_closed(evidence: Evidence) -> float | None:
    return estimate(opened(event="breaker_closed", of="outage.end"), evidence, None).value


def test_an_event_told_just_before_the_revert_was_recorded_counts_at_once() -> None:
    """The revert takes effect a moment before its record: its own beginning is the earliest anchor."""
    assert until_closed(closing(0.005)) == 0.0


def test_an_event_between_the_last_look_and_the_revert_is_no_answer_to_the_end_of_the_fault() -> None:
    """The fault stood: a breaker that closed then closed too soon, and must close again."""
    assert until_closed(closing(0.05)) is None


def test_a_journal_that_does_not_tell_when_a_revert_began_counts_from_the_last_look() -> None:
    told = closing(0.05)
    untold = [replace(r, fields={k: v for k, v in r.fields.items() if k != "took_s"}) for r in told.records]
    assert until_closed(replace(told, records=tuple(untold))) == 0.0


def test_an_anchor_that_never_came_is_missing() -> None:
    assert "never came" in (estimate(opened(of="other.start"), Story(), None).missing or "")


CALLS = "gateway_upstream_calls_total{dependency=vector-store}"
RUNNING = "vllm:num_requests_running"


def test_a_metric_boils_down_over_the_window() -> None:
    assert pytest.approx(estimate(Metric(CALLS, "delta"), Story(), "baseline").value, abs=12) == 300.0
    assert pytest.approx(estimate(Metric(CALLS, "rate"), Story(), "baseline").value, abs=1) == 20.0
    assert [estimate(Metric(RUNNING, "mean", t), Story()).value for t in (None, "engine-a")] == [4.0, 2.0]
    assert [estimate(Metric(RUNNING, how), Story(), w).value for how, w in (("max", "outage"), ("min", "gate"))] == [
        2.0,
        0.0,
    ]  # type: ignore[arg-type]  # test literals


def test_a_metric_that_is_not_there_or_never_moves_is_missing() -> None:
    assert "no series" in (estimate(Metric("nothing"), Story()).missing or "")
    assert "never moved" in (estimate(Metric("events_last"), Story()).missing or "")
    assert estimate(Metric("events_last", may_rest=True), Story()).value == 4.0
    assert "is not a series" in (estimate(Metric("rate(x)"), Story()).missing or "")


def test_what_is_left_running_is_read_after_the_drain() -> None:
    assert estimate(RequestsRunning(), Story(), "settled").value == 0.0
    assert estimate(RequestsRunning(), Story(running_at_end=3.0), "settled").value == 3.0


def test_an_engine_that_fell_silent_may_hide_requests() -> None:
    rows = [row for row in Story().readings() if row.target != "engine-b" or row.t < REVERT]
    evidence = replace(Story().evidence(), readings=Evidence.build((), (), rows).readings)
    assert "engine-b was not read" in (estimate(RequestsRunning(), evidence, "settled").missing or "")


TOOLS = ("side_effects", "audit_gaps", "unauthorised_calls")
CLAIMS = ("order", "event_count", "absent", "sql", "durability")


def test_the_catalog_is_whole_and_described() -> None:
    names = "success_ratio degraded_ratio shed_ratio ttft itl e2e recall retry_amplification recovery_time event metric"
    more = {
        "requests_running",
        "load_lateness",
        "stream_integrity",
        "output_length",
        "shed_latency",
        "cross_talk",
        *CLAIMS,
        "metastability",
        *TOOLS,
    }
    assert set(names.split()) | more == set(by_name())
    Catalog((), MEASURES)
    for measure in MEASURES:
        assert measure.summary
        assert all(s.doc for s in settings_of(measure))
