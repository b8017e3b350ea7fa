"""A run that is decided early is decided rightly."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record
from chaos.verdict.foregone import Known
from chaos.verdict.judge import judge
from chaos.verdict.statistics import interval_ranks, wilson
from chaos.verdict.windows import Window
from tests.verdict.cutting import CLAIMS, runs, watched
from tests.verdict.story import REVERT, Story, experiment


def test_the_cut_run_is_refuted_exactly_when_the_whole_one_is_and_by_the_same_hypotheses() -> None:
    """Both ways: whatever the cut one refutes the whole one refutes, and nothing that is upheld is ever cut short."""
    decided = 0
    for seed, run in runs():
        whole = judge(CLAIMS, run.whole)
        if run.cut is None:
            continue
        decided += 1
        cut = judge(CLAIMS, run.cut)
        of_whole = {h.name: h.verdict for h in whole.hypotheses}
        of_cut = {h.name: h.verdict for h in cut.hypotheses}
        assert ("refuted", "refuted", 1) == (cut.verdict, whole.verdict, cut.exit_code), (seed, cut.why, whole.why)
        assert set(run.refuted) <= {name for name, truth in of_cut.items() if truth == "refuted"}, seed
        early = {name: truth for name, truth in of_cut.items() if truth != "inconclusive"}
        assert early == {name: of_whole[name] for name in early}, seed
    assert decided >= 10


def test_what_cannot_be_known_yet_is_inconclusive_and_says_so() -> None:
    cut = next(run.cut for _, run in runs() if run.cut is not None)
    judged = {h.name: h for h in judge(CLAIMS, cut).hypotheses}["nothing left behind"]
    assert "inconclusive" == judged.verdict
    assert judged.why.startswith("the run was over before this could be known")
    assert "a run that is carried out to its end: without --stop-when-refuted" == judged.to_settle


def test_nothing_is_decided_before_every_fault_is_seen_gone() -> None:
    moments = [run.decided_at for _, run in runs() if run.decided_at is not None]
    assert min(moments) > REVERT + 0.4


def test_what_was_due_after_the_end_counts_against_no_precondition() -> None:
    cut = next(run.cut for _, run in runs() if run.cut is not None)
    assert [] == [check for check in judge(CLAIMS, cut).preconditions if not check.held]


def test_a_run_that_says_it_was_decided_without_the_record_did_not_run_to_its_end() -> None:
    verdict = judge(experiment(), Story(ending="decided").evidence())
    assert "inconclusive" == verdict.verdict
    assert "ran to its end" == next(check.name for check in verdict.preconditions if not check.held)


def test_an_attempt_that_became_the_last_only_because_the_load_ended_is_not_known() -> None:
    """Its client was about to try again: its end lies before the record, its row behind those that are counted."""
    decided = Record(0, 40.0, "decided", {"samples": 1})
    first, second = [replace(s, end_s=39.0, outcome="failed") for s in Story().samples() if s.request in (790, 791)]
    known = Known.at(Evidence.build([decided], [first, second]), decided)
    assert [790] == known.evidence.samples.request.tolist()
    assert 1 == known.open(Window("settled", ((40.0, 42.0),)), "chat")


def test_a_fault_that_was_not_proved_decides_nothing() -> None:
    """Such a run is inconclusive in the end, so there is nothing to be early about."""
    seed = next(seed for seed, run in runs() if run.cut is not None)
    assert watched(seed).decided_at is not None
    assert watched(seed, replaced={"fault_confirmed": {"seen": False}}).decided_at is None


def test_no_completion_of_a_window_saves_a_share_or_a_quantile_that_the_best_one_does_not() -> None:
    """The rule rests on this: among all ways in which the open requests can end the best one is the one counted."""
    dice = random.Random(1)
    for _ in range(300):
        n, open_ = dice.randint(1, 120), dice.randint(0, 40)
        hits = dice.randint(0, n)
        best = wilson(hits + open_, n + open_)[1], wilson(hits, n + open_)[0]
        for counted in range(open_ + 1):
            more = dice.randint(0, counted)
            low, high = wilson(hits + more, n + counted)
            assert high <= best[0] + 1e-12
            assert low >= best[1] - 1e-12
    for q in (0.5, 0.9, 0.99):
        ranks = np.array([interval_ranks(n, q, n)[0] or 0 for n in range(1, 400)])
        assert set(np.diff(ranks).tolist()) <= {0, 1}
