"""The course of a run, its lanes and its lines for a terminal."""

import dataclasses
import math
from pathlib import PurePosixPath

import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Record
from chaos.report.course import course_of, queues_of
from chaos.report.facts import Facts, gather
from chaos.report.lanes import closed_throughout, lanes_of
from chaos.report.sparklines import sparkline, sparklines
from chaos.verdict.judge import judge
from tests.verdict.story import CASES, INJECT, LOAD_START, REVERT, Story, experiment


def facts_of(evidence: Evidence) -> Facts:
    checked = experiment()
    return gather(checked, evidence, judge(checked, evidence), PurePosixPath("runs/the-run"))


def event(at: float, name: str, **about: str) -> tuple[float, str, dict[str, object]]:
    return (at + 0.2, "event", {"source": "gateway", "at": at, "name": name, **about})


def test_every_request_is_in_exactly_one_step() -> None:
    course = course_of(facts_of(CASES["refuted_pile_on"].evidence()), 1000)
    assert course is not None
    assert 50 == len(course.served) == len(course.due)
    assert [20] * 50 == course.due.tolist()
    assert 150 - 5 == int(course.outcomes["failed"].sum())
    assert math.isinf(course.p99[20])


@pytest.mark.parametrize(("most", "step"), [(50, 1), (49, 2), (10, 5), (1, 60)])
def test_a_long_run_has_longer_steps_and_loses_no_request(most: int, step: int) -> None:
    course = course_of(facts_of(CASES["upheld"].evidence()), most)
    assert course is not None
    assert (step, 1000) == (course.step_s, int(course.due.sum()))
    assert len(course.served) <= most


def test_a_run_without_load_has_no_course() -> None:
    facts = facts_of(CASES["gate_not_met"].evidence())
    assert course_of(facts, 100) is None
    assert sparklines(facts) == ""
    assert lanes_of(facts) == ()


def test_a_queue_that_held_somebody_is_drawn_at_its_deepest() -> None:
    evidence = CASES["upheld"].evidence()
    depths = [(LOAD_START + 3.1, 2.0), (LOAD_START + 3.6, 7.0), (LOAD_START + 4.1, 0.0)]
    waiting = [ReadingRow(t, "gateway", "gateway_queue_depth", depth) for t, depth in depths]
    empty = [ReadingRow(t, "engine-a", "vllm:num_requests_waiting", 0.0) for t, _ in depths]
    facts = facts_of(Evidence.build(evidence.records, (), (*waiting, *empty)))
    course = course_of(facts, 1000)
    assert course is not None
    queues = queues_of(facts, course)
    assert ["gateway"] == list(queues)
    assert [7.0, 0.0] == queues["gateway"][3:5].tolist()


def test_a_breaker_is_closed_until_it_opens_and_what_came_before_the_load_counts() -> None:
    story = Story(
        added=(
            event(LOAD_START - 0.5, "breaker_opened", dependency="cache", replica="cache"),
            event(LOAD_START + 1.0, "breaker_half_open", dependency="cache"),
            event(LOAD_START + 2.0, "replica_ejected", dependency="engine", replica="engine-a"),
        )
    )
    lanes = {
        lane.name: [(stay.begin, stay.state) for stay in lane.stays] for lane in lanes_of(facts_of(story.evidence()))
    }
    assert [(0.0, "open"), (1.0, "half-open")] == lanes["cache: breaker"]
    assert [(0.0, "in"), (2.0, "ejected")] == lanes["engine engine-a: rotation"]
    expected = [(0.0, "closed"), (INJECT + 0.8 - LOAD_START, "open"), (REVERT + 2.1 - LOAD_START, "closed")]
    assert expected == lanes["vector-store: breaker"]


def test_a_stack_without_events_is_drawn_from_its_gauge() -> None:
    def gauge(dependency: str, *values: float) -> list[ReadingRow]:
        name = f'gateway_breaker_state{{dependency="{dependency}",replica="{dependency}"}}'
        return [ReadingRow(LOAD_START + i, "gateway", name, value) for i, value in enumerate(values)]

    evidence = CASES["upheld"].evidence()
    quiet = [record for record in evidence.records if record.kind != "event"]
    facts = facts_of(Evidence.build(quiet, (), (*gauge("tool", 0, 2, 2, 1, 0), *gauge("cache", 0, 0, 0, 0, 0))))
    (lane,) = lanes_of(facts)
    assert "tool: breaker" == lane.name
    assert ["closed", "open", "half-open", "closed"] == [stay.state for stay in lane.stays]
    assert ("cache",) == closed_throughout(facts)


def test_a_lane_that_flaps_for_hours_is_cut_and_says_so() -> None:
    evidence = CASES["upheld"].evidence()
    flaps = [
        Record(99, 2 + n / 100, "event", {"name": name, "at": 2 + n / 100, "dependency": "cache"})
        for n, name in enumerate(["breaker_opened", "breaker_closed"] * 400)
    ]
    facts = facts_of(dataclasses.replace(evidence, records=(*evidence.records, *flaps)))
    lane = next(lane for lane in lanes_of(facts) if lane.name == "cache: breaker")
    assert (200, 601) == (len(lane.stays), lane.left_out)


def test_a_sparkline_tells_never_from_nothing() -> None:
    assert "▁▅█× █" == sparkline([0.0, 0.5, 1.0, math.inf, math.nan, 9.0], 1.0)


def test_the_lines_stand_over_the_same_seconds() -> None:
    lines = {line.split("  ")[0]: line for line in sparklines(facts_of(CASES["upheld"].evidence())).splitlines()}
    assert "vector-store: breaker" in lines
    assert lines["fault outage"].index("━") == lines["degraded"].index("█")
