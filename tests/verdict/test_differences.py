"""A window held against a control: noise is no difference, a real one is found, and what cannot be told is said."""

import math
from dataclasses import replace

import numpy as np
import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.record import Sample
from chaos.spec.model import Hypothesis
from chaos.verdict.judge import judge_hypothesis
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.e2e import E2e
from chaos.verdict.measures.output_length import OutputLength
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.measures.ttft import Ttft
from chaos.verdict.outcome import Judged
from chaos.verdict.windows import times_of
from tests.verdict.noise import LoadKind, arms, judged, mann_whitney_differs
from tests.verdict.story import Behaviour, Story, experiment

SEEDS = range(24)
"""A slice of the matrix `aa` of `make soak`, which has a thousand of each kind."""


@pytest.mark.parametrize("kind", ["separate", "shared"])
def test_noise_that_comes_in_waves_is_no_difference_and_half_as_slow_again_is_one(kind: LoadKind) -> None:
    pairs = [arms(kind, seed) for seed in SEEDS]
    assert "refuted" not in {judged(pair).verdict for pair in pairs}
    slower = [judged(pair.slower(1.5)).verdict for pair in pairs]
    assert slower.count("refuted") >= 0.9 * len(pairs)
    assert "upheld" not in slower
    assert sum(map(mann_whitney_differs, pairs)) >= 0.2 * len(pairs), "the noise is too tame to test anything"


def test_what_both_loads_had_in_common_drops_out() -> None:
    """The interval of a paired comparison is narrower than that of two windows with the same noise."""
    widths = {kind: [_width(judged(arms(kind, seed))) for seed in range(8)] for kind in ("separate", "shared")}
    assert np.mean(widths["shared"]) < 0.8 * np.mean(widths["separate"])


def _width(found: Judged) -> float:
    assert found.interval is not None
    return math.log(found.interval[1] / found.interval[0])


def claim(measure: object, story: Story | Evidence, **keys: object) -> Judged:
    evidence = story if isinstance(story, Evidence) else story.evidence()
    against = {"window": "outage", "against": "baseline", **keys}
    hypothesis = Hypothesis("no worse", measure, **against)  # type: ignore[arg-type]  # keys are test literals
    return judge_hypothesis(hypothesis, evidence, times_of(experiment(), evidence))


HURT = Story(hurt=Behaviour(fail_every=10, degraded="no_retrieval", ttft_s=0.2))


def test_a_share_is_compared_in_points_worse() -> None:
    found = claim(SuccessRatio(), HURT, at_most=0.02)
    assert (found.verdict, found.unit, found.value) == ("refuted", "points", pytest.approx(0.1))
    assert "10 points worse" in found.why
    assert "90% against 100% in the baseline" in found.why
    assert claim(SuccessRatio(), Story(), at_most=0.02).verdict == "upheld"


def test_worse_is_up_for_what_nobody_wants() -> None:
    assert claim(DegradedRatio(reason="no_retrieval"), HURT, at_least=0.9).value == 1.0
    assert claim(DegradedRatio(reason="no_retrieval"), HURT, at_least=0.9).verdict == "upheld"
    shed = [replace(s, outcome="shed") if s.outcome == "failed" else s for s in HURT.samples()]
    evidence = replace(HURT.evidence(), samples=Evidence.build((), shed).samples)
    assert claim(ShedRatio(), evidence, at_most=0.02).value == pytest.approx(0.1)


def test_failures_that_come_in_a_row_are_one_piece_of_bad_luck() -> None:
    """Thirty failures spread over the window say more than thirty in one second and a half."""
    spread, row = _with_failures(lambda n: n % 10 == 0), _with_failures(lambda n: 100 <= n < 130)
    loose, tight = (claim(SuccessRatio(), evidence, at_most=0.05) for evidence in (row, spread))
    assert loose.value == tight.value == pytest.approx(0.1)
    assert tight.verdict == "refuted"
    assert loose.verdict == "inconclusive"
    assert loose.to_settle


def _with_failures(fails: object) -> Evidence:
    story = Story(hurt=Behaviour())
    inside = [s for s in story.samples() if 16 <= s.intended_s < 31]
    failed = {s.request for n, s in enumerate(inside) if fails(n)}  # type: ignore[operator]  # a predicate
    samples = [_failed(s) if s.request in failed else s for s in story.samples()]
    return replace(story.evidence(), samples=Evidence.build((), samples).samples)


def _failed(sample: Sample) -> Sample:
    return replace(sample, outcome="failed", first_token_s=None, answer_ok=False)


def test_a_wait_is_compared_as_a_factor_and_names_the_slowest() -> None:
    found = claim(Ttft("p90"), Story(hurt=Behaviour(ttft_s=0.2)), at_most=1.5)
    assert (found.verdict, found.unit) == ("refuted", "factor")
    assert found.value == pytest.approx(4.0, rel=0.05)
    assert "in the baseline, 300 and 300 requests; blocks of 1s" in found.why
    assert found.records[0].startswith("request chat/")


def test_waiting_in_vain_is_slower_than_any_factor() -> None:
    dead = Story(hurt=Behaviour(fail_every=1))
    found = claim(E2e("p90"), dead, at_most=1.5)
    assert (found.verdict, found.interval) == ("refuted", (math.inf, math.inf))
    assert claim(E2e("p90"), dead, against="outage", window="baseline", at_most=1.5).value == 0.0


def test_two_endless_waits_have_no_ratio() -> None:
    found = claim(E2e("p90"), Story(usual=Behaviour(fail_every=1), hurt=Behaviour(fail_every=1)), at_most=1.5)
    assert (found.verdict, found.value) == ("inconclusive", None)


def test_output_length_takes_another_control_than_the_baseline() -> None:
    story = Story(hurt=Behaviour())
    found = claim(OutputLength(), story, against="settled", at_most=1.2)
    assert found.value == 1.0
    assert "5.0 in the settled" in found.why


@pytest.mark.parametrize(
    ("measure", "keys", "missing"),
    [
        (Ttft("p99"), {}, "only 300 requests in this window; a comparison takes 500"),
        (Ttft("p50", load="chat"), {"against": None, "against_load": "batch"}, "only 0 requests in load batch"),
        (SuccessRatio(), {"against": "gate"}, "only 0 requests in the gate"),
        (SuccessRatio(), {"against": "elsewhere"}, "the window elsewhere never opened"),
    ],
)
def test_what_is_missing_is_said(measure: object, keys: dict[str, object], missing: str) -> None:
    found = claim(measure, HURT, at_most=1.5, **keys)
    assert found.verdict == "inconclusive"
    assert missing in found.why


def test_two_loads_at_the_same_time_are_compared_second_by_second() -> None:
    story = Story(hurt=Behaviour(ttft_s=0.2))
    beside = [replace(s, load="plain", request=s.request + 10_000) for s in story.samples()]
    evidence = replace(story.evidence(), samples=Evidence.build((), [*story.samples(), *beside]).samples)
    found = claim(Ttft("p90", load="chat"), evidence, against=None, against_load="plain", at_most=1.1)
    assert (found.verdict, found.value, found.interval) == ("upheld", 1.0, (1.0, 1.0))
    assert "the same blocks of 1s of both" in found.why
