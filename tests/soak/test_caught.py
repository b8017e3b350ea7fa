"""The table of weaknesses keeps up with the stack and the experiments."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system")]

from caught import shown_in, stale, table, with_table
from drill import ROOT

from target_stack.weaknesses import WEAKNESSES


def test_every_weakness_has_an_experiment_with_the_claim_that_catches_it() -> None:
    assert [] == stale([weakness.name for weakness in WEAKNESSES])


def test_a_weakness_that_nothing_catches_is_told() -> None:
    names = [*(weakness.name for weakness in WEAKNESSES), "new_mistake"]
    assert ["no experiment is named to catch the weakness new_mistake"] == stale(names)


def test_the_readme_shows_the_table_as_it_is() -> None:
    shown = shown_in((ROOT / "README.md").read_text())
    assert table(shown.partition("\n")[0]) == shown


def test_only_what_stands_between_the_markers_is_written() -> None:
    page = with_table((ROOT / "README.md").read_text(), "new")
    assert (ROOT / "README.md").read_text() == with_table(page, shown_in((ROOT / "README.md").read_text()))
