"""The state machine of a run that goes on: windows, faults, requests, guards, annotations, at any moment of it."""

from __future__ import annotations

import dataclasses

import pytest

from chaos.journal.record import OUTCOMES
from chaos.live.following import MOST_MOMENTS, Followed
from chaos.openmetrics import Point, Spread
from tests.live.told import plan, told
from tests.verdict.story import CASES, INJECT, LOAD_END, LOAD_START, REVERT, STORM, Story


def followed(story: Story, until_s: float = 1e9) -> Followed:
    run = Followed(plan())
    for kind, fields in told(story, until_s):
        run.tell(kind, fields)
    return run


def value(run: Followed, now_s: float, name: str, **labels: str) -> float | None:
    (family,) = (f for f in run.families(now_s) if f.name == name)
    found = [p.value for p in family.points if isinstance(p, Point) and labels.items() <= p.labels.items()]
    assert len(found) < 2, found
    return found[0] if found else None


@pytest.mark.parametrize(
    ("now_s", "windows"),
    [
        (0.0, {"gate"}),
        (LOAD_START + 1, {"baseline"}),
        (INJECT + 1, {"fault", "outage"}),
        (REVERT + 1, {"recovery"}),
        (REVERT + 13, {"settled"}),
        (LOAD_END + 1.9, set()),
    ],
)
def test_the_window_that_is_open(now_s: float, windows: set[str]) -> None:
    run = followed(Story(), now_s)
    assert windows == run.windows(now_s)
    assert windows == {n for n in ("gate", "baseline", "fault", "outage", "recovery", "settled")
                       if value(run, now_s, "brownout_window", window=n)}  # fmt: skip


def test_before_anything_is_told_there_is_no_window_and_no_run() -> None:
    run = Followed(plan())
    assert (frozenset(), None) == (run.windows(0.0), value(run, 0.0, "brownout_run_info"))


def test_a_pause_between_two_faults_is_no_window() -> None:
    whole = plan()
    second = dataclasses.replace(whole.faults[0], name="again")
    run = Followed(dataclasses.replace(whole, faults=(*whole.faults, second)))
    for kind, fields in told(Story(), REVERT + 1):
        run.tell(kind, fields)
    assert frozenset() == run.windows(REVERT + 1)


def test_a_fault_is_in_force_from_its_inject_to_its_revert() -> None:
    about = {"fault": "outage", "kind": "process_kill", "target": "vector-store"}
    states = [
        (value(run, t, "brownout_fault_in_force", **about), value(run, t, "brownout_fault_confirmed", **about))
        for t in (1.0, INJECT + 0.01, INJECT + 1, REVERT + 1)
        for run in [followed(Story(), t)]
    ]
    assert states == [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]


def test_a_fault_that_cannot_be_reverted_stays_in_force() -> None:
    assert 1.0 == value(followed(CASES["not_reverted"]), LOAD_END, "brownout_fault_in_force", fault="outage")


def test_requests_are_counted_once_each_and_all_outcomes_are_there_from_the_beginning() -> None:
    early = followed(Story(), LOAD_START)
    assert [0.0] * len(OUTCOMES) == [value(early, 1.0, "brownout_requests", outcome=o) for o in OUTCOMES]
    story = CASES["refuted_pile_on"]
    run, samples = followed(story), [*story.samples()]
    counts = {o: value(run, LOAD_END, "brownout_requests", load="chat", outcome=o) for o in OUTCOMES}
    assert counts == {o: sum(s.outcome == o for s in samples) for o in OUTCOMES}
    assert sum(counts.values()) == value(run, LOAD_END, "brownout_requests_planned", load="chat") == len(samples)


def test_an_attempt_that_is_not_the_last_counts_nothing() -> None:
    run = followed(Story(), LOAD_START)
    first = next(Story().samples())
    run.tell("sample", {"sample": dataclasses.replace(first, final=False)})
    assert 0.0 == value(run, 1.0, "brownout_requests", outcome="good")


def test_those_who_waited_in_vain_are_in_the_last_bucket() -> None:
    story = CASES["refuted_pile_on"]
    (waits,) = (f for f in followed(story).families(LOAD_END) if f.name == "brownout_ttft_seconds")
    (spread,) = (p for p in waits.points if isinstance(p, Spread))
    assert spread.counts[-1] == sum(s.first_token_s is None for s in story.samples())
    assert sum(spread.counts) == len([*story.samples()])


def test_guards_show_what_they_see_and_what_they_want() -> None:
    name = "success_ratio of chat over 5s"
    run = followed(CASES["refuted_pile_on"], INJECT + 8)
    assert 0.75 == pytest.approx(value(run, INJECT + 8, "brownout_guard_value", guard=name), abs=0.02)
    assert 0.4 == value(run, INJECT + 8, "brownout_guard_limit", guard=name, side="below")
    assert 0.0 == value(run, INJECT + 8, "brownout_guard_tripped", guard=name)
    run.tell("guard_tripped", {"t": INJECT + 9, "guard": name, "value": 0.1, "bound": "not below 40%"})
    assert 1.0 == value(run, INJECT + 9, "brownout_guard_tripped", guard=name)


def test_a_guard_that_sees_too_few_requests_has_no_value() -> None:
    run = followed(Story(), LOAD_START + 0.2)
    assert value(run, LOAD_START + 0.2, "brownout_guard_value", guard="success_ratio of chat over 5s") is None


def test_a_run_ends() -> None:
    assert [1.0, 0.0] == [value(followed(Story(), t), t, "brownout_run_running") for t in (INJECT, LOAD_END + 3)]


def test_a_standing_fault_is_a_stretch_that_grows_and_ends_with_its_revert() -> None:
    began = 1796115600_000 + INJECT * 1000
    for now_s, ends_s, text in (
        (INJECT + 2, INJECT + 2, "confirmed: 3 processes gone"),
        (LOAD_END, REVERT, "confirmed"),
    ):
        (stretch,) = (a for a in followed(Story(), now_s).annotations(now_s) if ",fault," in a["tags"])
        assert (stretch["time"], stretch["timeEnd"]) == (began, 1796115600_000 + ends_s * 1000)
        assert text in stretch["text"]
        assert stretch["tags"] == "brownout,fault,process_kill,vector-store"


def test_what_the_stack_tells_is_a_point_at_its_own_time() -> None:
    (opened,) = (a for a in followed(Story()).annotations(LOAD_END) if "breaker_opened" in a["text"])
    assert opened["time"] == opened["timeEnd"] == 1796115600_000 + round((INJECT + 0.8) * 1000)
    assert opened["tags"] == "brownout,stack"


def test_a_stack_that_never_stops_talking_is_forgotten_from_its_beginning() -> None:
    event = {"source": "gateway", "dependency": "tool"}
    many = tuple(
        (3 + n / 1000, "event", {**event, "name": f"n{n}", "at": 3 + n / 1000}) for n in range(MOST_MOMENTS + 50)
    )
    points = [a for a in followed(Story(added=many)).annotations(LOAD_END) if a["tags"] == "brownout,stack"]
    assert len(points) <= MOST_MOMENTS
    assert "n0" not in {a["text"] for a in points}


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_stored_run_can_be_followed_to_its_end(case: str) -> None:
    run = followed(CASES[case])
    assert run.families(LOAD_END)
    assert all(a["time"] <= a["timeEnd"] for a in run.annotations(LOAD_END + 5))


def test_a_storm_of_samples_leaves_nothing_behind_but_counts() -> None:
    """Only the guards' seconds of samples are kept."""
    run = followed(dataclasses.replace(Story(hurt=STORM), rate=100.0))
    assert len(run._recent._samples) <= 6 * 100 * 5
