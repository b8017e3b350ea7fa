"""What the limiters must do, recomputed at every step from the list of all that was ever observed.

`mismatch(seed)` plays one random sequence of observations against the real limiter and says where the two part, or
None.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from target_stack.gateway.policies.limiter import LimiterSettings, make_limiter

EVENTS = 30


@dataclass(frozen=True)
class Seen:
    """An answer, or with `took_s` None an engine that was busy."""

    at: float
    took_s: float | None
    in_flight: int


def limit_by(rules: LimiterSettings, seen: list[Seen]) -> float:
    """The limit after all this, as a real number."""
    shrinks = _shrinks(rules, seen)
    limit = float(rules.initial)
    for number, one in enumerate(seen):
        if number in shrinks:
            limit *= rules.decrease
        elif one.took_s is None:
            continue
        elif rules.kind == "gradient":
            limit = _by_gradient(rules, limit, one, _usual_s(rules, seen[: number + 1]))
        elif one.took_s <= rules.target_s and one.in_flight >= int(limit) / 2:
            limit += 1 / limit
        limit = sorted((rules.minimum, limit, rules.maximum))[1]
    return limit


def _shrinks(rules: LimiterSettings, seen: list[Seen]) -> set[int]:
    """The observations that shrink the limit by the fixed factor: bad ones, none within a cool-down of another."""
    bad = [
        number
        for number, one in enumerate(seen)
        if one.took_s is None or (rules.kind == "aimd" and one.took_s > rules.target_s)
    ]
    counted: set[int] = set()
    for number in bad:
        if all(seen[number].at >= seen[other].at + rules.cooldown_s for other in counted):
            counted.add(number)
    return counted


def _usual_s(rules: LimiterSettings, seen: list[Seen]) -> float:
    answers = [one.took_s for one in seen if one.took_s is not None]
    usual_s, weight = answers[0], 2 / (rules.window + 1)
    for took_s in answers:
        usual_s = (1 - weight) * usual_s + weight * took_s
        usual_s = 0.95 * usual_s if usual_s / took_s > 2 else usual_s
    return usual_s


def _by_gradient(rules: LimiterSettings, limit: float, one: Seen, usual_s: float) -> float:
    assert one.took_s is not None
    ratio = rules.tolerance * usual_s / one.took_s
    wanted = limit * sorted((0.5, ratio, 1.0))[1] + limit**0.5
    if wanted >= limit and one.in_flight < int(limit) / 2:
        return limit
    return (1 - rules.smoothing) * limit + rules.smoothing * wanted


def rules_of(dice: random.Random) -> LimiterSettings:
    minimum = dice.choice((1, 4, 8))
    return LimiterSettings(
        kind=dice.choice(("aimd", "gradient")),
        initial=minimum + dice.choice((0, 4, 16)),
        minimum=minimum,
        maximum=minimum + dice.choice((16, 40)),
        decrease=dice.choice((0.5, 0.9)),
        cooldown_s=dice.choice((0.0, 0.5)),
        target_s=dice.choice((0.2, 0.5)),
        tolerance=dice.choice((1.0, 1.5, 2.0)),
        window=dice.choice((5, 50, 600)),
    )


def mismatch(seed: int) -> str | None:
    """One sequence of observations, played to both."""
    dice = random.Random(seed)
    rules = rules_of(dice)
    real, seen, now = make_limiter(rules), list[Seen](), 1000.0
    for number in range(EVENTS):
        now += dice.choice((0.0, 0.01, 0.1, 0.6))
        took_s = None if dice.random() < 0.1 else dice.choice((0.02, 0.15, 0.45, 1.2)) * dice.uniform(0.8, 1.2)
        one = Seen(now, took_s, dice.randrange(80))
        seen.append(one)
        if took_s is None:
            real.refused(now)
        else:
            real.answered(now, took_s, one.in_flight)
        due = limit_by(rules, seen)
        if real.limit not in (math.floor(due - 1e-6), math.floor(due + 1e-6)):
            return f"seed {seed}, observation {number} {one}: limit {real.limit}, by the rules {due:.3f}"
    return None
