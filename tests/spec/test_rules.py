"""Cross-field rules: each says its one thing where it should, and nothing where it should not."""

from __future__ import annotations

import pytest

from chaos.spec.explain import CODES
from chaos.spec.rules import RULES

NOTHING_LEFT = "  - {name: nothing left,       window: settled, measure: requests_running, at_most: 0}\n"
TTFT = "measure: ttft, quantile: p99, at_most: 1.5s"
SLOWER = "measure: ttft, quantile: p90, at_most: 1.5"
SERVED = "at_least: 99%"


def test_every_rule_has_the_code_of_its_name():
    assert {rule.__name__.replace("_", "-") for rule in RULES} <= set(CODES)


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("fault-exceeds-blast-radius", "for: 15s", "for: 31s"),
        ("role-outside-blast-radius", "{role: vector-store}", "{role: gateway}"),
        ("count-exceeds-blast-radius", "count: 1", "count: 2"),
        ("count-exceeds-blast-radius", "count: 1\n", "role: engine\n      count: 2\n"),
        ("no-target", "    target: {role: vector-store}\n", ""),
        ("no-target", "{role: vector-store}", "{count: 1}"),
        ("no-traffic", "rate: 90/m", "rate: 0/m"),
        ("duplicate-name", "name: slow\n", "name: outage\n"),
        ("duplicate-name", "{name: talk", "{name: chat"),
        ("duplicate-name", "name: nothing left", "name: quick recovery"),
        ("reserved-name", "name: slow\n", "name: settled\n"),
        ("unknown-window", "window: settled,", "window: setled,"),
        ("unknown-load", "load: chat, below", "load: chatt, below"),
        ("unknown-load", "load: chat, at_least", "load: x, at_least"),
        ("unknown-moment", "outage.start", "outage"),
        ("unknown-moment", "outage.start", "slwo.start"),
        ("unknown-role", "engine]", "motor]"),
        ("unknown-prompts", "product-questions", "questions"),
        ("runbook-not-found", "runbook: vector-store-outage", "runbook: nowhere"),
        ("missing-runbook", "runbook: vector-store-outage\n", ""),
        ("no-bound", ", at_most: 1.1", ""),
        ("no-bound", ", below: 50%", ""),
        ("contradicting-bounds", "at_most: 1.5s", "at_most: 1.5s, at_least: 2s"),
        ("contradicting-bounds", "below: 50%", "below: 50%, above: 40%"),
        ("cannot-fail", "at_least: 99%", "at_least: 0%"),
        ("cannot-fail", "at_least: 99%", "at_most: 100%"),
        ("cannot-fail", "at_most: 1.5s", "at_least: 0s"),
        ("no-window", "window: settled, measure", "measure"),
        ("window-not-used", "measure: recovery_time", "window: settled, measure: recovery_time"),
        ("window-not-used", "measure: recovery_time", "grace: 1s, measure: recovery_time"),
        (
            "measure-not-for-guards",
            "measure: success_ratio, load: chat, below: 50%",
            "measure: recovery_time, of: ttft, above: 5s",
        ),
        ("empty-window", "grace: 1s", "grace: 15s"),
        ("empty-window", "over: 5s", "over: 0s"),
        ("no-minimum-samples", "at_least: 99%", "at_least: 99.9%"),
        ("no-minimum-samples", "at_least: 99%", "at_most: 0.1%"),
        ("no-minimum-samples", "at_least: 99%", "at_least: 100%"),
        ("unknown-window", TTFT, f"against: basline, {SLOWER}"),
        ("unknown-load", TTFT, f"load: chat, against_load: tolk, {SLOWER}"),
        ("no-comparison", "measure: recovery_time", "against: baseline, measure: recovery_time"),
        ("no-control", TTFT, f"against: outage, {SLOWER}"),
        ("no-control", TTFT, f"against: slow, {SLOWER}"),
        ("no-control", TTFT, f"against: gate, {SLOWER}"),
        ("no-control", TTFT, f"against_load: chat, {SLOWER}"),
        ("no-control", TTFT, f"load: chat, against_load: chat, {SLOWER}"),
        ("no-control", TTFT, f"load: chat, against_load: talk, against: baseline, {SLOWER.replace('p90', 'p50')}"),
        ("no-margin", TTFT, f"against: baseline, {SLOWER.replace('1.5', '1.04')}"),
        ("no-margin", TTFT, f"against: baseline, {SLOWER.replace('1.5', '0.96')}"),
        ("no-margin", SERVED, "against: baseline, at_least: 0.05%"),
        ("cannot-fail", SERVED, "against: baseline, at_most: 100%"),
        ("cannot-fail", TTFT, f"against: baseline, {SLOWER.replace('at_most: 1.5', 'at_least: 0')}"),
        ("not-a-number", TTFT, f"against: baseline, {SLOWER.replace('1.5', '1.5s')}"),
        ("not-a-percentage", SERVED, "against: baseline, at_most: 1.5"),
        ("too-few-to-compare", TTFT, f"load: chat, against_load: talk, {SLOWER}"),
        ("no-minimum-samples", SERVED, "against: baseline, at_most: 0.5%"),
        ("unknown-key", "below: 50%", "below: 50%, against: baseline"),
        ("usual-without-room", "below: 50%, over: 5s", "below: 50%, usual: 40%"),
        ("usual-without-room", "below: 50%, over: 5s", "above: 50%, usual: 60%"),
        ("usual-without-room", "below: 50%, over: 5s", "below: 50%, usual: 100%"),
        ("usual-without-room", "below: 50%, over: 5s", "below: 50%, above: 90%, usual: 60%"),
        ("over-not-used", "below: 50%", "below: 50%, usual: 99%"),
        ("no-minimum-samples", "load: chat, at_least", "load: talk, at_least"),
        ("no-minimum-samples", "window: outage,  measure: success_ratio", "window: slow,  measure: success_ratio"),
    ],
)
def test_a_broken_rule_is_told_alone(codes, code, old, new):
    assert [code] == codes((old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for: 15s", "for: 30s"),
        (TTFT, f"against: baseline, {SLOWER}"),
        (TTFT, f"load: chat, against_load: talk, {SLOWER.replace('p90', 'p50')}"),
        (TTFT, f"against: baseline, {SLOWER.replace('1.5', '0.8')}"),
        (SERVED, "against: baseline, at_most: 2%"),
        (SERVED, "against: baseline, at_least: 50%"),
        ("at: 5s", "at: 0s"),
        ("  node: any\n      count: 1", "  name: engine-a"),
        ("at_most: 1.5s", "at_least: 1s, at_most: 1.5s"),
        ("at_most: 1.1", "at_least: 0"),
        ("at_least: 99%", "at_least: 0%, at_most: 90%"),
        ("below: 50%, over: 5s", "below: 97%, usual: 99%"),
        ("outage.start", "slow.end"),
        ("window: settled,", "window: gate,"),
        ("window: outage,  measure: success_ratio", "window: fault,  measure: success_ratio"),
    ],
)
def test_what_is_right_is_not_complained_about(codes, old, new):
    assert codes((old, new)) == []


def test_a_control_needs_neither_target_nor_runbook(codes):
    control = ("kind: process_kill\n    target: {role: vector-store}\n    restart: on_revert\n", "kind: noop\n")
    harmless = (
        (
            "kind: net_latency\n    target:\n      node: any\n      count: 1\n"
            "    latency: 300ms\n    jitter: 20ms\n    share: 99.5%\n"
        ),
        "kind: noop\n",
    )
    assert codes(control, harmless, ("runbook: vector-store-outage\n", "")) == []


def test_a_fault_that_lasts_no_time_does_not_also_empty_the_windows(codes):
    assert codes(("for: 15s", "for: 0s")) == ["empty-fault"]


def test_names_are_not_judged_when_a_name_could_not_be_read(codes):
    assert codes(("  - name: outage\n    kind", "  - kind")) == ["missing-key"]
    assert codes(("  - name: outage\n", "  - name: [outage]\n")) == ["not-text"]


def test_a_refused_fault_still_names_its_window(codes):
    assert codes(("at: 0s", "at: 0")) == ["not-a-duration"]


@pytest.mark.parametrize(("expected", "window"), [([], "13.4s"), (["no-minimum-samples"], "13.3s")])
def test_99_percent_takes_268_requests(codes, expected, window):
    settled = (NOTHING_LEFT, "  - {name: back, window: settled, measure: success_ratio, load: chat, at_least: 99%}\n")
    assert expected == codes(settled, ("settled: 15s", f"settled: {window}"))


def test_the_union_of_overlapping_faults_counts_once(codes):
    """`outage` covers 0 to 15 s and `slow` 5 to 10 s: 15 s of 20/s are 300 requests, too few for 99.3 %."""
    longer = ("window: outage,  measure: success_ratio", "window: fault,  measure: success_ratio")
    assert codes(longer, ("at_least: 99%", "at_least: 99.1%")) == []
    assert codes(longer, ("at_least: 99%", "at_least: 99.3%")) == ["no-minimum-samples"]


@pytest.mark.parametrize(("expected", "times"), [([], "12"), (["no-minimum-samples"], "1")])
def test_requests_of_a_surge_count_in_the_window_that_they_fall_into(codes, expected, times):
    """`outage` is 15 s long: with twelve times 20/s for 10 of them 2,500 requests are due."""
    surge = ("rate: 20/s", f"rate: 20/s\n    surge: {{times: {times}, for: 10s}}")
    assert expected == codes(surge, ("at_least: 99%", "at_least: 99.8%"))


def test_a_message_about_two_places_shows_both(read):
    (problem,) = read(("for: 15s", "for: 31s"))
    assert [(r.label, r.span.line) for r in problem.related] == [("limit set here", 8)]
    assert problem.help == "shorten it to at most 30s, or raise blast_radius.duration"
