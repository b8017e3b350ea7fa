"""An answer names what it rests on: the requests that speak against it, the slowest ones, the lines of the journal."""

from dataclasses import replace
from typing import Any

import pytest

from chaos.journal.evidence import Evidence
from chaos.verdict.document import from_json, to_json
from chaos.verdict.judge import judge
from chaos.verdict.measures.itl import Itl
from chaos.verdict.measures.load_lateness import LoadLateness
from chaos.verdict.measures.measure import Estimator
from chaos.verdict.measures.output_length import OutputLength
from chaos.verdict.measures.shed_latency import ShedLatency
from chaos.verdict.view import Bound, View
from chaos.verdict.windows import times_of
from tests.verdict.story import CASES, Story, experiment


def records_of(case: str, hypothesis: str) -> tuple[str, ...]:
    verdict = judge(experiment(), CASES[case].evidence())
    return next(h.records for h in verdict.hypotheses if h.name == hypothesis)


def test_a_share_names_the_first_requests_that_speak_against_it() -> None:
    assert records_of("refuted_pile_on", "users are served")[0] == (
        f"request chat/300 (failed: status_500, trace {300:032x})"
    )
    assert records_of("upheld", "users are served") == ()


def test_a_wait_names_the_slowest() -> None:
    (first, *_) = records_of("upheld", "no slow failure")
    assert first.startswith("request chat/")


def test_an_event_names_its_line_of_the_journal() -> None:
    assert records_of("upheld", "breaker opens") == ("journal 6 (breaker_opened at 16.80s)",)


def test_a_recovery_names_the_revert_and_the_last_who_suffered() -> None:
    revert, *suffered = records_of("refuted_pile_on", "quick recovery")
    assert revert.endswith("(fault_reverted at 31.00s)")
    assert all("failed: status_500" in request for request in suffered)
    assert len(records_of("upheld", "quick recovery")) == 1


@pytest.mark.parametrize(
    ("measure", "odd"),
    [
        (Itl(), {"gaps_s": (0.02, 1.0, 0.02)}),
        (Itl(), {"outcome": "failed", "why": "cut"}),
        (LoadLateness(), {"sent_s": 22.0}),
        (ShedLatency(), {"outcome": "shed", "end_s": 25.0}),
        (OutputLength(), {"tokens": 900}),
    ],
)
def test_of_a_whole_window_the_one_that_stands_out_is_named_first(measure: Estimator, odd: dict[str, Any]) -> None:
    """Request 400 is due in the outage, at 21 s; every other one there is like its neighbours."""
    samples = [replace(s, **odd) if s.request == 400 else s for s in Story().samples()]
    evidence = replace(Story().evidence(), samples=Evidence.build((), samples).samples)
    times = times_of(experiment(), evidence)
    found = measure.estimate(View(evidence, times, times.windows["outage"], Bound(at_most=1.0)))
    assert found.records[0].startswith("request chat/400 (")


def test_records_survive_the_way_through_verdict_json_and_may_be_missing_in_old_ones() -> None:
    verdict = judge(experiment(), CASES["refuted_pile_on"].evidence())
    document = to_json(verdict)
    assert from_json(document).hypotheses[0].records == verdict.hypotheses[0].records
    del document["hypotheses"][0]["records"]
    assert from_json(document).hypotheses[0].records == ()
