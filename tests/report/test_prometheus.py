"""The run's measures as Prometheus text: read back with Prometheus' own parsers, and named in one table."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import pytest
from prometheus_client import parser as classic
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.samples import Sample

from chaos.journal.evidence import load_evidence
from chaos.report.measured import TABLE, WAITS, measured
from chaos.report.prometheus import to_prometheus
from tests.report.test_pages import evil, facts_of
from tests.verdict.story import CASES, JOURNALS

PAGE = Path(__file__).parents[2] / "docs" / "exports.md"


@cache
def text_of(case: str) -> str:
    return to_prometheus(facts_of(load_evidence(JOURNALS / case)))


def samples_of(text: str) -> list[Sample]:
    return [sample for family in openmetrics.text_string_to_metric_families(text) for sample in family.samples]


def value(text: str, name: str, **labels: str) -> float | None:
    """The one series of this name with these labels among others; None when there is none."""
    found = [s.value for s in samples_of(text) if s.name == name and labels.items() <= s.labels.items()]
    assert len(found) < 2, found
    return found[0] if found else None


@pytest.mark.parametrize("case", sorted(CASES))
def test_both_parsers_read_the_same_series(case: str) -> None:
    text = text_of(case)
    read = [s for family in classic.text_string_to_metric_families(text) for s in family.samples]
    assert read == samples_of(text)
    assert [] == [s for s in read if math.isnan(s.value)]


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_series_says_which_run_it_is_of(case: str) -> None:
    assert all({"experiment", "run", "seed", "profile"} <= s.labels.keys() for s in samples_of(text_of(case)))


def test_the_verdict_is_a_state_set() -> None:
    states = {v: value(text_of("refuted_pile_on"), "brownout_run_verdict", verdict=v) for v in ("upheld", "refuted")}
    assert states == {"upheld": 0.0, "refuted": 1.0}


def test_a_hypothesis_has_value_interval_bound_and_n() -> None:
    text = text_of("refuted_pile_on")
    found = [
        value(text, f"brownout_hypothesis_{name}", hypothesis="users are served")
        for name in ("value", "low", "high", "bound", "samples")
    ]
    assert found == pytest.approx([0.75, 0.7068, 0.7888, 0.99, 300], abs=1e-4)


def test_what_never_came_is_infinite_and_what_is_missing_is_absent() -> None:
    text = text_of("refuted_pile_on")
    assert value(text, "brownout_hypothesis_value", hypothesis="no slow failure") == math.inf
    assert value(text, "brownout_hypothesis_value", hypothesis="breaker opens") is None
    assert value(text, "brownout_hypothesis_high", hypothesis="breaker opens") == math.inf
    assert value(text_of("gate_not_met"), "brownout_hypothesis_low", hypothesis="users are served") is None


def test_a_recovery_that_did_not_come_is_infinite_and_one_that_nobody_could_see_is_absent() -> None:
    assert value(text_of("refuted_pile_on"), "brownout_run_recovery_seconds") == 14.0
    assert value(text_of("interrupted"), "brownout_run_recovery_seconds") is None


def test_the_books_balance_in_the_text_too() -> None:
    text = text_of("refuted_pile_on")
    requests = [s.value for s in samples_of(text) if s.name == "brownout_run_requests"]
    assert sum(requests) == value(text, "brownout_run_requests_planned") == 1000


def test_a_fault_has_its_times_as_unix_time() -> None:
    text, began = text_of("upheld"), 1796115600.0
    times = [
        value(text, f"brownout_fault_{name}_timestamp_seconds", fault="outage", target="vector-store")
        for name in ("injected", "confirmed", "reverted", "gone")
    ]
    assert times == [began + 16.0, began + 16.05, began + 31.0, began + 31.4]
    assert value(text_of("not_reverted"), "brownout_fault_gone") == 0.0
    assert value(text_of("not_reverted"), "brownout_fault_reverted_timestamp_seconds") is None


def test_waits_are_histograms_that_hold_those_who_waited_in_vain() -> None:
    text = text_of("refuted_pile_on")
    buckets = {s.labels["le"]: s.value for s in samples_of(text) if s.name == "brownout_run_ttft_seconds_bucket"}
    assert (buckets["0.1"], buckets["30.0"], buckets["+Inf"]) == (420.0, 855.0, 1000.0)


def test_names_from_outside_stay_inside_their_label() -> None:
    text = to_prometheus(evil())
    assert "<script>" in value_of_label(text, "run")


def value_of_label(text: str, label: str) -> str:
    return next(s.labels[label] for s in samples_of(text))


def test_the_page_names_every_family_with_its_labels_and_meaning() -> None:
    """Write a new row of the table into docs/exports.md."""
    rows = [
        *((row.name, ", ".join(row.labels), row.help) for row in TABLE),
        *((name, "load", told) for name, told, _ in WAITS),
    ]
    documented = re.findall(r"^\| `(brownout_\w+)` \| (.*?) ?\| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(name, labels, told) for name, labels, told in documented]


def test_no_series_has_other_labels_than_its_row_says() -> None:
    promised = {row.name: {*row.labels} for row in TABLE} | {name: {"load"} for name, _, _ in WAITS}
    common = {"experiment", "run", "seed", "profile"}
    for family in measured(facts_of(load_evidence(JOURNALS / "refuted_pile_on"))):
        assert all(set(point.labels) - common == promised[family.name] for point in family.points), family.name
