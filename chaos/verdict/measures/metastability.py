"""Did the stack stay down when what pushed it down was gone?

A metastable failure outlives its trigger: resends, a line of work that nobody waits for any more, a cache that only
good answers would fill, a breaker that never finds its dependency well enough. Such a run counts 1, one that recovered
or is surely on its way counts 0, so that `at_most: 0` says "never stuck". How it is told: `chaos.verdict.metastable`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.units import Rate
from chaos.verdict.course import course_of
from chaos.verdict.metastable import Diagnosis, diagnose
from chaos.verdict.naming import journal_line
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View
from chaos.verdict.wording import say

_VALUES = {"recovered": 0.0, "slow": 0.0, "stuck": 1.0}


@dataclass(frozen=True)
class Metastability:
    """See `summary`."""

    name: ClassVar[str] = "metastability"
    summary: ClassVar[str] = "1 when the stack stays down after the trigger is gone, 0 when it recovers; names the loop"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = False

    load: str | None = setting("only this load; default all", default=None)
    capacity: Rate | None = setting(
        "what the stack can serve, where no gauge tells how many requests wait (gateway_queue_depth, "
        "vllm:num_requests_waiting); default the most it was seen to serve",
        default=None,
    )

    def estimate(self, view: View) -> Estimate:
        """0 or 1 without doubt, or both possible: then `to_settle` says what would tell."""
        course = course_of(view, self.load)
        if isinstance(course, str):
            return Estimate(None, missing=course)
        found = diagnose(course, None if self.capacity is None else float(self.capacity))
        value = _VALUES.get(found.state)
        interval = (0.0, 1.0) if value is None else (value, value)
        told = Estimate(value, interval, len(course.after), detail=in_words(found), to_settle=found.to_settle)
        reverts = view.evidence.of_kind("fault_reverted")
        return replace(told, records=tuple(journal_line(record) for record in reverts[-1:]))


def in_words(found: Diagnosis) -> str:
    """The diagnosis in one sentence, for a report."""
    return {"recovered": _recovered, "slow": _slow, "stuck": _stuck, "unknown": _unknown}[found.state](found)


def _recovered(found: Diagnosis) -> str:
    expected = "" if found.predicted_s is None else f", {_expected(found.predicted_s)}"
    relative = f", {found.took_s / found.trigger_s:.1f} times the trigger" if found.took_s and found.trigger_s else ""
    return f"RECOVERED {_s(found.took_s)} after the trigger was gone{relative}{expected}"


def _expected(predicted_s: float) -> str:
    """Formula 3; with a capacity that is only known from below it is an upper bound."""
    return f"the formula allows {_s(predicted_s)}"


def _slow(found: Diagnosis) -> str:
    return f"SLOW: {_down(found)}, on its way: about {_s(found.more_s)} more at this pace"


def _stuck(found: Diagnosis) -> str:
    who = f"{_named(found)}; only a control arm proves it" if found.loops else "no loop shows: something may be broken"
    return f"STUCK: {_down(found)}, and going nowhere; {who}"


def _unknown(found: Diagnosis) -> str:
    down = "" if math.isnan(found.kept[0]) else f"{_down(found)}; "
    return f"cannot be told: {down}{found.doubt}" + (f"; {_named(found)}" if found.loops else "")


def _down(found: Diagnosis) -> str:
    value, _, high = found.kept
    return f"{value:.0%} of the goodput before (at most {high:.0%}), {_s(found.watched_s)} after the trigger was gone"


def _named(found: Diagnosis) -> str:
    first, *others = found.loops
    more = f" ({', '.join(f'also {other.loop}: {other.seen}' for other in others)})" if others else ""
    return f"the loop looks like {first.loop}: {first.seen}{more}"


def _s(seconds: float | None) -> str:
    return say(seconds, "duration")
