"""What a retry budget must do, in closed form over the whole list of what was earned and paid.

Both accounts are walks with a ceiling: what is there now is the burst less the largest net payment since any earlier
moment. Nothing is carried from one step to the next. Ratios are halves and quarters, so that sums are exact.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from target_stack.gateway.policies.retry_budget import make_retry_budget
from target_stack.gateway.policies.settings import RetryBudgetSettings

EVENTS = 24


def balance(burst: float, changes: Sequence[float]) -> float:
    """What is there after these changes, of which no payment was larger than what was there."""
    return burst + min(sum(changes[start:]) for start in range(len(changes) + 1))


def rules_of(dice: random.Random) -> RetryBudgetSettings:
    return RetryBudgetSettings(
        ratio=dice.choice((0.0, 0.25, 0.5)),
        burst=dice.choice((0.0, 1.0, 3.5, 10.0)),
        work_burst=dice.choice((0.0, 100.0, 1000.0)),
    )


def mismatch(seed: int) -> str | None:
    """One sequence of successes and asked retries: where the real budget and the closed form part, or None."""
    dice = random.Random(seed)
    rules, likely = rules_of(dice), dice.choice((0.2, 0.5, 0.8))
    real = make_retry_budget(rules)
    calls: list[float] = []
    work: list[float] = []
    for number in range(EVENTS):
        tokens = dice.choice((0, 1, 40, 160, 1200))
        if dice.random() < likely:
            real.succeeded(tokens)
            change = (rules.ratio, rules.ratio * tokens)
        else:
            payable = balance(rules.burst, calls) >= 1 and balance(rules.work_burst, work) >= tokens
            if real.take_retry(tokens) != payable:
                return f"seed {seed}, event {number}: a retry of {tokens} tokens is {'' if payable else 'not '}payable"
            change = (-1.0, -float(tokens)) if payable else (0.0, 0.0)
        calls.append(change[0])
        work.append(change[1])
        due = balance(rules.burst, calls), balance(rules.work_burst, work)
        if (real.calls, real.work) != due:
            return f"seed {seed}, event {number}: holds {real.calls} and {real.work}, by the rules {due}"
    return None
