"""What the store lists after a run is held against what its clients were told; without a last list nothing is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Sample
from chaos.verdict.measures.durability import Durability
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View
from chaos.verdict.windows import times_of
from tests.verdict.story import INJECT, LOAD_END, LOAD_START, REVERT, Story, experiment

OUTCOMES = {2: "failed", 5: "abandoned", 7: "indeterminate"}


def trace(number: int) -> str:
    return f"{number:012x}" + "0" * 20


def marker(number: int) -> str:
    return f"m-{number:012x}"


def sample(number: int) -> Sample:
    """Ten writes; number 9 was never sent."""
    base = next(iter(Story().samples()))
    due, outcome = LOAD_START + number, OUTCOMES.get(number, "good")
    more: dict[str, Any] = {"attempt": 0, "outcome": "indeterminate"} if number == 9 else {"outcome": outcome}
    return replace(base, load="notes", request=number, intended_s=due, end_s=due + 0.2, trace_id=trace(number), **more)


Step = tuple[float, str, str | None]


def stored(numbers: Iterable[int], at: float = INJECT) -> list[Step]:
    return [(at, "document_stored", marker(number)) for number in numbers]


def run(steps: Iterable[Step], listed: float | None = LOAD_END + 1) -> Evidence:
    added = tuple(
        (at + 0.1, "event", {"source": "vector-store", "at": at, "name": name, "marker": found, "document": f"k{n}"})
        for n, (at, name, found) in enumerate(steps)
    )
    evidence = Story(added=added).evidence()
    rows = [] if listed is None else [ReadingRow(listed, "vector-store", "uploads_listed", 1.0)]
    built = Evidence.build(samples=map(sample, range(10)), readings=rows)
    return replace(evidence, samples=built.samples, readings=built.readings)


def durability(evidence: Evidence) -> Estimate:
    return Durability("notes").estimate(View(evidence, times_of(experiment(), evidence)))


ACKNOWLEDGED = (0, 1, 3, 4, 6, 8)


@pytest.mark.parametrize("landed", [(), (2, 5), (2, 5, 7)])
def test_a_write_without_an_answer_may_be_there_or_not(landed: tuple[int, ...]) -> None:
    found = durability(run(stored([*ACKNOWLEDGED, *landed])))
    assert (0.0, 6, ()) == (found.value, found.n, found.records)


def test_lost_stored_twice_and_invented_ones_are_counted_and_named() -> None:
    steps = [*stored([0, 1, 3, 4, 6, 6, 9]), (INJECT, "document_stored", "m-c0ffee000000")]
    found = durability(run(steps))
    assert "1 lost, 1 stored twice, 2 invented, of 6 acknowledged" == found.detail
    assert 4.0 == found.value
    assert [each.rpartition(": ")[2] for each in found.records] == ["lost", "stored twice", "invented", "invented"]
    assert found.records[0].startswith(f"request notes/8 (good, trace {trace(8)})")
    assert "document m-c0ffee000000: invented" in found.records


def test_what_was_listed_once_and_is_gone_after_the_crash_is_lost() -> None:
    steps = [*stored(ACKNOWLEDGED), (REVERT + 1, "document_gone", marker(8))]
    assert "1 lost" in durability(run(steps)).detail
    assert 0.0 == durability(run([*steps, *stored([8], REVERT + 3)])).value


def test_the_gates_own_document_and_one_of_an_earlier_run_are_nobodys_invention() -> None:
    steps = [*stored(ACKNOWLEDGED), (LOAD_START - 0.4, "document_stored", "m-000000000fff")]
    assert 0.0 == durability(run([*steps, *stored([0], at=-3.0)])).value


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        (None, "nobody listed what the store holds"),
        (LOAD_START + 5, "the store was not listed after the last request had ended"),
        (REVERT - 1, "the store was not listed after the last revert"),
    ],
)
def test_without_the_last_list_nothing_is_known(listed: float | None, why: str) -> None:
    assert why == durability(run(stored(ACKNOWLEDGED), listed)).missing


def test_a_run_in_which_nothing_was_acknowledged_proves_nothing() -> None:
    assert "no document of notes was acknowledged" == durability(Story().evidence()).missing
