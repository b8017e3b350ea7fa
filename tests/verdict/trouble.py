"""Streams of outcomes in which trouble begins at a known request, for the guard that knows what is usual."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from chaos.spec.model import Guard
from chaos.verdict.live import Guards
from chaos.verdict.measures.success_ratio import SuccessRatio
from tests.verdict.story import Story

USUAL, LIMIT, RISEN = 0.01, 0.03, 0.10
"""Shares of bad outcomes: as usual, as the guard allows, and ten times the usual."""

FALSE_STOPS, MISSED = 0.01, 0.05
RATE_PER_S = 20.0
BASELINE, LENGTH = 300, 1_000
"""Requests before the plan changes something, and of the whole run."""

_GOOD = next(iter(Story().samples()))


def fixed_size() -> int:
    """Requests of the test that is asked only once, at its end, with the same error rates: 656."""
    z_false, z_missed = 2.3263, 1.6449
    spread = z_false * math.sqrt(USUAL * (1 - USUAL)) + z_missed * math.sqrt(LIMIT * (1 - LIMIT))
    return math.ceil((spread / (LIMIT - USUAL)) ** 2)


def tripped_after(seed: int, risen: float, begins: int, requests: int = LENGTH) -> int | None:
    """Outcomes from the beginning of trouble to the stop, asked after every one; below 1 is a false stop."""
    dice = random.Random(seed)
    changes = (BASELINE / RATE_PER_S, 2 * BASELINE / RATE_PER_S)
    guard = Guard(SuccessRatio(), below=1 - LIMIT, usual=1 - USUAL)
    guards = Guards([guard], length_s=requests / RATE_PER_S, moments=changes)
    bad = replace(_GOOD, outcome="failed", first_token_s=None)
    for number in range(requests):
        at = number / RATE_PER_S
        fails = dice.random() < (USUAL if number < begins else risen)
        guards.feed(replace(bad if fails else _GOOD, intended_s=at, end_s=at))
        if guards.tripped(at):
            return number + 1 - begins
    return None
