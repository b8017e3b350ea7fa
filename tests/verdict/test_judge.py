"""Stored runs get the verdict they must get, and the order of preconditions, hypotheses and exit codes holds."""

import json
import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from chaos.journal.evidence import load_evidence
from chaos.journal.reader import Problem
from chaos.verdict.document import NotAVerdict, from_json, to_json, to_text
from chaos.verdict.judge import decide, judge
from chaos.verdict.outcome import Estimate, exit_code_of, merge, worst
from chaos.verdict.view import Bound
from tests.verdict.story import CASES, JOURNALS, Story, experiment

REWRITE = os.environ.get("BROWNOUT_REWRITE") == "1"


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_stored_run_gets_its_stored_verdict_again(case: str) -> None:
    run_dir = JOURNALS / case
    verdict = judge(experiment((run_dir / "experiment.yaml").read_text()), load_evidence(run_dir))
    if REWRITE:
        (run_dir / "verdict.json").write_text(to_text(verdict))
    assert json.loads((run_dir / "verdict.json").read_text()) == to_json(verdict)


@pytest.mark.parametrize(
    ("case", "truth", "code"),
    [
        ("upheld", "upheld", 0),
        ("refuted_pile_on", "refuted", 1),
        ("inconclusive_fault_not_confirmed", "inconclusive", 2),
        ("inconclusive_load_late", "inconclusive", 2),
        ("inconclusive_too_few_requests", "inconclusive", 2),
        ("interrupted", "inconclusive", 2),
        ("stopped", "inconclusive", 3),
        ("gate_not_met", "inconclusive", 3),
        ("not_reverted", "inconclusive", 4),
    ],
)
def test_each_way_a_run_ends_has_its_exit_code(case: str, truth: str, code: int) -> None:
    verdict = judge(experiment(), load_evidence(JOURNALS / case))
    assert (truth, code) == (verdict.verdict, verdict.exit_code)


def test_every_stored_run_is_a_known_case() -> None:
    assert sorted(CASES) == sorted(path.name for path in JOURNALS.iterdir() if path.is_dir())


def test_a_weakness_refutes_the_hypotheses_it_should() -> None:
    verdict = judge(experiment(), CASES["refuted_pile_on"].evidence())
    refuted = {h.name for h in verdict.hypotheses if h.verdict == "refuted"}
    assert {"no pile-on", "breaker opens", "users are served"} <= refuted


def test_without_its_preconditions_nothing_is_upheld_or_refuted() -> None:
    """The numbers alone are told, but the answer of each hypothesis is inconclusive."""
    story = replace(CASES["refuted_pile_on"], lateness_s=0.6)
    verdict = judge(experiment(), story.evidence())
    assert {"inconclusive"} == {h.verdict for h in verdict.hypotheses}
    assert "The numbers alone: refuted" in verdict.hypotheses[0].why


@pytest.mark.parametrize(
    ("story", "unmet"),
    [
        (Story(replaced={"gate": {"held": False, "why": "503"}}), "gate held"),
        (Story(left_out=frozenset({"run_finished"})), "ran to its end"),
        (Story(lateness_s=0.6), "load delivered"),
        (Story(sent=0.9), "load delivered"),
        (Story(replaced={"load_started": {"loads": [{"name": "chat", "planned": 999}]}}), "books balance"),
        (Story(replaced={"fault_still": {"seen": False, "what": "it is back already"}}), "fault outage confirmed"),
        (Story(left_out=frozenset({"fault_still"})), "fault outage confirmed"),
        (Story(left_out=frozenset({"fault_confirmed"})), "fault outage confirmed"),
        (Story(left_out=frozenset({"fault_injected"})), "fault outage confirmed"),
        (Story(replaced={"fault_gone": {"seen": False, "what": "refused"}}), "fault outage gone"),
    ],
)
def test_each_precondition_can_fail(story: Story, unmet: str) -> None:
    verdict = judge(experiment(), story.evidence())
    assert verdict.verdict == "inconclusive"
    assert unmet in {c.name for c in verdict.preconditions if not c.held}


def test_tampered_evidence_is_never_judged() -> None:
    evidence = replace(Story().evidence(), problems=(Problem("tampered", "line 7"),))
    assert (
        judge(experiment(), evidence).verdict,
        judge(experiment(), evidence).preconditions[0].held,
    ) == ("inconclusive", False)


def test_a_fault_that_the_watchdog_reverted_later_is_gone() -> None:
    story = replace(CASES["not_reverted"])
    lines = tuple({"fault": "outage", "step": step, "ok": True, "t": 40.0, "why": ""} for step in ("revert", "gone"))
    verdict = judge(experiment(), replace(story.evidence(), watchdog=lines))
    assert (verdict.faults[0].reverted_by, verdict.faults[0].gone, verdict.faults[0].reverted_at) == (
        "watchdog",
        True,
        40.0,
    )
    assert verdict.exit_code != 4


INSIDE, OUTSIDE, ACROSS = (0.99, 1.0), (0.5, 0.6), (0.9, 1.0)


@pytest.mark.parametrize(
    ("interval", "truth"), [(INSIDE, "upheld"), (OUTSIDE, "refuted"), (ACROSS, "inconclusive"), (None, "inconclusive")]
)
def test_only_a_whole_interval_decides(interval: tuple[float, float] | None, truth: str) -> None:
    assert truth == decide(Estimate(0.95, interval, 100), Bound(at_least=0.95))


@pytest.mark.parametrize(
    ("interval", "truth"),
    [((1.0, 2.0), "upheld"), ((3.5, float("inf")), "refuted"), ((2.0, float("inf")), "inconclusive")],
)
def test_a_wait_without_end_is_refuted_only_when_it_was_watched_past_the_bound(
    interval: tuple[float, float], truth: str
) -> None:
    assert truth == decide(Estimate(None, interval, 0), Bound(at_most=3.0))


def test_what_is_missing_is_never_upheld() -> None:
    assert decide(Estimate(1.0, (1.0, 1.0), 9, missing="the series"), Bound(at_least=0.5)) == "inconclusive"


def test_the_merge_table() -> None:
    order = {"refuted": 0, "inconclusive": 1, "upheld": 2}
    for truths in product(order, repeat=3):
        assert min(truths, key=order.__getitem__) == merge(truths)
    assert merge([]) == "inconclusive"


def test_the_worst_exit_code_wins() -> None:
    order = [4, 70, 64, 3, 1, 2, 0]
    for a, b in product(order, repeat=2):
        assert min((a, b), key=order.index) == worst([a, b])
    assert [exit_code_of(t) for t in ("upheld", "refuted", "inconclusive")] == [0, 1, 2]


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_verdict_survives_its_document(case: str) -> None:
    document = to_json(judge(experiment(), CASES[case].evidence()))
    assert document == to_json(from_json(json.loads(json.dumps(document, allow_nan=False))))


def test_the_promised_keys_are_there() -> None:
    document = to_json(judge(experiment(), Story().evidence()))
    promised = (
        "version run experiment fingerprint seed profile weaknesses verdict exit_code preconditions faults hypotheses "
        "requests"
    )
    assert set(promised.split()) <= set(document)
    hypothesis = "name verdict measure window value interval n bound why to_settle"
    assert set(hypothesis.split()) <= set(document["hypotheses"][0])
    fault = "name kind targets fidelity injected_at confirmed observer reverted_at gone"
    assert set(fault.split()) <= set(document["faults"][0])


@pytest.mark.parametrize("document", [{}, {"version": 2}, {"version": 1}, {"version": 1, "run": "r", "faults": 3}])
def test_another_document_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(NotAVerdict):
        from_json(document)


def test_judging_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    CASES["refuted_pile_on"].write(tmp_path / "run")
    texts = {to_text(judge(experiment(), load_evidence(tmp_path / "run"))) for _ in range(2)}
    assert len(texts) == 1
