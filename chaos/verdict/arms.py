"""Control arms: the same run once more with one loop cut. What recovers without a loop and not with it, is kept down by
that loop; this is the one proof that a single run cannot give. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from chaos.journal.evidence import Evidence
from chaos.spec.model import Experiment
from chaos.verdict.course import course_of
from chaos.verdict.metastable import Diagnosis, diagnose
from chaos.verdict.outcome import Verdict
from chaos.verdict.view import View
from chaos.verdict.windows import times_of
from chaos.verdict.wording import say

ARM = "control arm:"
"""How the note of an arm begins."""


@dataclass(frozen=True)
class Arm:
    """A run with a loop `cut`, and what became of it; `found` is the reason where that cannot be told at all."""

    cut: str
    run: str
    found: Diagnosis | str


def diagnosis_of(experiment: Experiment, evidence: Evidence) -> Diagnosis | str:
    """What became of the stack in a run, or why nobody can tell."""
    course = course_of(View(evidence, times_of(experiment, evidence)))
    return course if isinstance(course, str) else diagnose(course)


def with_arms(verdict: Verdict, found: Diagnosis | str, arms: Sequence[Arm]) -> Verdict:
    """The verdict with a note for each arm, and the arms as `control_arms` for programs. The verdict itself stays."""
    if not arms:
        return verdict
    notes = tuple(in_words(found, arm) for arm in arms)
    extra = {**verdict.extra, "control_arms": [_document(arm) for arm in arms]}
    return replace(verdict, notes=(*verdict.notes, *notes), extra=extra)


def in_words(found: Diagnosis | str, arm: Arm) -> str:
    """`control arm: with retries cut it recovers in 4s, else it stays down: the loop is retries`."""
    head = f"{ARM} with {arm.cut} cut"
    for what, told in (("", arm.found), ("the run itself: ", found)):
        if isinstance(told, str):
            return f"{head} nothing can be said: {what}{told}"
    assert isinstance(arm.found, Diagnosis)  # noqa: S101  both are, see above
    assert isinstance(found, Diagnosis)  # noqa: S101  both are, see above
    here, there = _became(arm.found), _became(found)
    return f"{head} it {here}, else it {there}: {_therefore(arm.cut, found.state, arm.found.state)}"


def _therefore(cut: str, state: str, without: str) -> str:
    if state == "stuck" and without == "recovered":
        return f"the loop is {cut}"
    if state == "stuck" and without == "stuck":
        return "the loop is another"
    if state == "recovered":
        return "there is no loop to name"
    return "a longer recovery window would tell"


def _became(found: Diagnosis) -> str:
    return {
        "recovered": f"recovers in {say(found.took_s, 'duration')}",
        "slow": f"is on its way ({say(found.more_s, 'duration')} more)",
        "stuck": "stays down",
        "unknown": f"cannot be told ({found.doubt})",
    }[found.state]


def _document(arm: Arm) -> dict[str, Any]:
    state, took = ("unknown", None) if isinstance(arm.found, str) else (arm.found.state, arm.found.took_s)
    return {"cut": arm.cut, "run": arm.run, "state": state, "took_s": took}
