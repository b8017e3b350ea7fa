"""The rehearsed-by table remembers the last five runs, newest first, and reads itself back."""

import pytest

from chaos.runbooks.block import KEPT, Rehearsal, next_block, rehearsal, render, rows_of
from chaos.verdict.judge import judge
from tests.verdict.story import CASES, Story, experiment


def row(number: int) -> Rehearsal:
    return Rehearsal(f"2026-12-{number:02d}", "retrieval/outage", "upheld", "800ms", "2s", f"run-{number}")


def test_nothing_rehearsed_is_said_in_words() -> None:
    assert (render([]), rows_of(render([]))) == ("Not rehearsed yet.", ())


def test_the_table_reads_itself_back() -> None:
    rows = (row(3), row(2), row(1))
    assert rows_of(render(rows)) == rows


def test_only_the_last_five_stay_newest_first() -> None:
    block = render([])
    for number in range(1, 8):
        block = next_block(block, row(number))
    assert [r.run for r in rows_of(block)] == [f"run-{n}" for n in (7, 6, 5, 4, 3)]
    assert len(rows_of(block)) == KEPT


def test_judging_a_run_again_replaces_its_row() -> None:
    changed = Rehearsal("2026-12-01", "retrieval/outage", "refuted", "-", "-", "run-1")
    assert rows_of(next_block(render([row(1)]), changed)) == (changed,)


def test_a_row_that_a_person_broke_is_dropped() -> None:
    broken = render([row(1), row(2)]).replace("2026-12-01", "last Monday")
    assert rows_of(broken) == (row(2),)


def test_a_pipe_in_a_name_does_not_add_a_column() -> None:
    odd = Rehearsal("2026-12-01", "a|b", "upheld", "-", "-", "r")
    assert rows_of(render([odd])) == (odd,)


@pytest.mark.parametrize(
    ("story", "detected", "recovered"),
    [(Story(), "800ms", "0s"), (CASES["refuted_pile_on"], "-", "14s"), (Story(scar_s=0), "800ms", "0s")],
)
def test_detection_and_recovery_come_from_the_hypotheses(story: Story, detected: str, recovered: str) -> None:
    found = rehearsal(judge(experiment(), story.evidence()), "2026-12-01")
    assert (found.detected, found.recovered, found.date) == (detected, recovered, "2026-12-01")
