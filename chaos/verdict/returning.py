"""When did something come back for good? One flag a slice, and a rule that neither luck nor a short calm satisfies."""

from __future__ import annotations

from collections.abc import Iterable

RELAPSE = 3
"""Slices in a row that are not back make the search begin again behind them."""


def back_since(back: Iterable[bool], in_a_row: int) -> int | None:
    """The start of the first row of `in_a_row` slices that are back and behind which there is no relapse."""
    found, good, bad = None, 0, 0
    for index, is_back in enumerate(back):
        good, bad = (good + 1, 0) if is_back else (0, bad + 1)
        if found is None and good == in_a_row:
            found = index - in_a_row + 1
        if bad == RELAPSE:
            found = None
    return found
