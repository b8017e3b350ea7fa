"""The table of weaknesses keeps up with the stack and the experiments."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system")]

from caught import stale

from target_stack.weaknesses import WEAKNESSES


def test_every_weakness_has_an_experiment_with_the_claim_that_catches_it() -> None:
    assert [] == stale([weakness.name for weakness in WEAKNESSES])


def test_a_weakness_that_nothing_catches_is_told() -> None:
    names = [*(weakness.name for weakness in WEAKNESSES), "new_mistake"]
    assert ["no experiment is named to catch the weakness new_mistake"] == stale(names)
