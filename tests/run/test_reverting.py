"""One revert for everybody: tries that grow apart, and a watch that reverts again what comes back."""

from __future__ import annotations

import pytest

from chaos.run.reverting import pauses


def test_pauses_double_up_to_a_longest_and_stay_within_their_sum() -> None:
    assert list(pauses(1.5)) == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert sum(pauses(30.0)) <= 30.0
    assert max(pauses(30.0)) == 2.0
