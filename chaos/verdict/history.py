"""Writes and what is left of them, by the rules of a set: what was acknowledged is there, once, and nothing else is.

    acknowledged ─► there, once            missing: lost
    no answer    ─► there once, or not     (a write whose answer was lost may have been made)
    never sent   ─► not there              there: invented
    anything     ─► never twice            twice: duplicated

The rules are those of the set workload of Jepsen's checkers: an indeterminate write constrains nothing but its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True)
class Broken:
    """Which elements broke the promise, each kind sorted."""

    lost: tuple[str, ...]
    duplicated: tuple[str, ...]
    invented: tuple[str, ...]

    @property
    def count(self) -> int:
        """All of them."""
        return len(self.lost) + len(self.duplicated) + len(self.invented)


def compare(acknowledged: AbstractSet[str], unanswered: AbstractSet[str], stored: Mapping[str, int]) -> Broken:
    """Hold what is stored (element to how often) against the history of the writes."""
    there = {element for element, times in stored.items() if times > 0}
    return Broken(
        lost=tuple(sorted(acknowledged - there)),
        duplicated=tuple(sorted(element for element, times in stored.items() if times > 1)),
        invented=tuple(sorted(there - acknowledged - unanswered)),
    )
