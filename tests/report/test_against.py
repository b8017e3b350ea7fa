"""Which requests a reader sees who opens a hypothesis, and how its interval is drawn."""

import math
from pathlib import PurePosixPath
from xml.etree import ElementTree as ET

import pytest

from chaos.report.against import MOST, Against, against
from chaos.report.facts import Facts, gather
from chaos.report.interval_plot import WIDTH, interval_plot, scale
from chaos.verdict.judge import judge
from chaos.verdict.outcome import Judged, Truth
from tests.verdict.story import CASES, EXPERIMENT, INJECT, Behaviour, Story, experiment


def facts_of(story: Story, text: str = EXPERIMENT) -> Facts:
    checked = experiment(text)
    evidence = story.evidence()
    return gather(checked, evidence, judge(checked, evidence), PurePosixPath("runs/the-run"))


def opened(facts: Facts, name: str) -> Against:
    pairs = zip(facts.experiment.hypotheses, facts.verdict.hypotheses, strict=True)
    return next(against(facts, h, judged) for h, judged in pairs if judged.name == name)


def test_failed_requests_of_the_window_speak_against_a_share() -> None:
    facts = facts_of(CASES["refuted_pile_on"])
    found, samples = opened(facts, "users are served"), facts.evidence.samples
    assert (75, 300, True) == (found.total, found.counted, found.direct)
    assert {"failed"} == set(samples.outcome[found.rows])
    assert "75 of 300 requests speak against it." == found.told


def test_the_slowest_and_those_who_waited_in_vain_come_first() -> None:
    found = opened(facts_of(CASES["refuted_pile_on"]), "no slow failure")
    assert (300, MOST) == (found.total, len(found.rows))
    assert found.told == "300 of 300 requests speak against it; the worst 200 of them."
    samples = facts_of(CASES["refuted_pile_on"]).evidence.samples
    assert {"failed"} == set(samples.outcome[found.rows[:75]])


def test_an_upheld_wait_shows_its_slowest_requests() -> None:
    found = opened(facts_of(CASES["upheld"]), "no slow failure")
    assert (0, 20) == (found.total, len(found.rows))
    assert "None of 300 requests speaks against it: the worst." == found.told


def test_answers_that_do_not_admit_what_is_missing_speak_against_the_degraded_share() -> None:
    facts = facts_of(Story(hurt=Behaviour(degraded="", ttft_s=0.06)))
    found = opened(facts, "answers say so")
    assert found.total == found.counted == 240, "the grace of 3 s is left out"
    assert min(facts.evidence.samples.intended_s[found.rows]) >= INJECT + 3


def test_a_measure_that_counts_no_requests_shows_who_fared_worst_meanwhile() -> None:
    found = opened(facts_of(CASES["refuted_pile_on"]), "breaker opens")
    assert (20, False) == (len(found.rows), found.direct)
    assert "Not measured on single requests: the 20 that fared worst meanwhile." == found.told


def judged(
    verdict: Truth, value: float | None, interval: tuple[float, float] | None, unit: str = "ratio", **bound: float
) -> Judged:
    return Judged("it", verdict, "success_ratio", unit, "outage", value, interval, 10, bound, "why")


def drawn(claim: Judged) -> ET.Element:
    return ET.fromstring(interval_plot(claim))  # noqa: S314  our own text


@pytest.mark.parametrize(
    ("claim", "where"),
    [
        (judged("upheld", 0.995, (0.993, 0.999), at_least=0.99), "right"),
        (judged("refuted", 0.75, (0.7, 0.79), at_least=0.99), "left"),
        (judged("inconclusive", 0.985, (0.97, 0.995), at_least=0.99), "across"),
        (judged("refuted", None, (36.5, math.inf), "duration", at_most=3.0), "right"),
        (judged("upheld", 0.0, (0.0, 0.0), "count", at_most=0.0), "on"),
    ],
)
def test_where_the_whisker_lies_against_the_bound_is_the_verdict(claim: Judged, where: str) -> None:
    low, high = scale(claim)
    (bound,) = claim.bound.values()
    assert claim.interval is not None
    begin, end = (min(max(side, low), high) for side in claim.interval)
    assert low < bound < high
    told = "on" if begin == end == bound else "left" if end < bound else "right" if begin > bound else "across"
    assert where == told


def test_everything_is_drawn_inside_and_said_in_words() -> None:
    picture = drawn(judged("refuted", None, (36.5, math.inf), "duration", at_most=3.0))
    assert "refuted: not within 36.5s, wanted at most 3s" == picture.attrib["aria-label"]
    shaded = next(picture.iter("rect"))
    assert 0 <= float(shaded.attrib["x"]) <= WIDTH
    assert [] == list(drawn(judged("inconclusive", None, None, at_least=0.99)).iter("circle"))
