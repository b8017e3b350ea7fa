"""Rules on controls: a window is held against something else that was there, by a margin that noise does not cross.

Two halves of one quiet hour differ. A bound of `1.0` on their ratio is crossed every other time, and no number of
requests mends that: noise that comes in waves keeps its size. Only a margin does, so a bound without one is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chaos.spec.diagnostic import Diagnostic
from chaos.spec.draft import Draft, Placed
from chaos.spec.model import Hypothesis
from chaos.spec.rules_claims import requests_due
from chaos.spec.wording import shown
from chaos.units import Ratio

LEAST_FACTOR = 0.05
LEAST_POINTS = 0.001
FEWEST_BEYOND = 5
"""Requests beyond a quantile without which it cannot be compared: a p99 takes 500."""


def no_control(draft: Draft) -> Iterator[Diagnostic]:
    """The control is one other thing, and something was there to be measured."""
    for hypothesis in draft.hypotheses:
        h = hypothesis.value
        if h.against is not None and h.against_load is not None:
            related = {hypothesis.at("against"): "the other control"}
            headline = "a window and a load at once are no control"
            yield draft.problem("no-control", hypothesis.at("against_load"), headline, related=related)
        elif h.against == "gate":
            help_text = "the load begins after the gate; use `baseline`"
            yield draft.problem(
                "no-control", hypothesis.at("against"), "nothing is sent in the gate", help_text=help_text
            )
        elif h.against is not None and _overlap(draft, h.window, h.against):
            headline = f"window {shown(str(h.window))} shares its time with {shown(h.against)}"
            yield draft.problem("no-control", hypothesis.at("against"), headline, help_text="use `baseline`")
        elif h.against_load is not None and getattr(h.measure, "load", None) in (None, h.against_load):
            help_text = "add `load:` with the name of the other one"
            headline = "a load is held against another one"
            yield draft.problem("no-control", hypothesis.at("against_load"), headline, help_text=help_text)


def _overlap(draft: Draft, window: str | None, against: str) -> bool:
    """Whether some moment belongs to both by plan."""
    if window == against:
        return True
    faults = [fault.value for fault in draft.faults]
    ours, theirs = ([f for f in faults if name in ("fault", f.name)] for name in (window, against))
    return any(a.at < b.at + b.for_ and b.at < a.at + a.for_ for a in ours for b in theirs)


def no_margin(draft: Draft) -> Iterator[Diagnostic]:
    """A bound on a difference keeps away from no difference at all."""
    for hypothesis in draft.hypotheses:
        for key in ("at_least", "at_most"):
            bound = getattr(hypothesis.value, key)
            if bound is None or not hypothesis.value.compares:
                continue
            if hypothesis.value.unit == "factor" and abs(bound - 1) < LEAST_FACTOR - 1e-9:
                headline, help_text = f"any noise breaks a factor of {bound:g}", "leave room for noise: 1.1 is 10 %"
                yield draft.problem("no-margin", hypothesis.at(key), headline, help_text=help_text)
            elif hypothesis.value.unit == "points" and bound < LEAST_POINTS - 1e-9:
                headline, help_text = (
                    f"any noise breaks a difference of {Ratio(bound)}",
                    "leave room for noise: 2% is 2 points",
                )
                yield draft.problem("no-margin", hypothesis.at(key), headline, help_text=help_text)


def too_few_to_compare(draft: Draft) -> Iterator[Diagnostic]:
    """A quantile is compared only where enough requests lie beyond it, in both arms."""
    for hypothesis in draft.hypotheses:
        h = hypothesis.value
        q = _QUANTILES.get(str(getattr(h.measure, "quantile", "")))
        if not h.compares or q is None:
            continue
        needed = math.ceil(FEWEST_BEYOND / (1 - q) - 1e-9)
        due = {
            "window": requests_due(draft, h, h.window),
            "against": requests_due(draft, h, h.against) if h.against else None,
            "against_load": requests_due(draft, h, h.window, h.against_load) if h.against_load else None,
        }
        for key, requests in due.items():
            if requests is not None and requests[0] < needed:
                yield _too_few(draft, hypothesis, key, requests[0], needed)


_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def _too_few(draft: Draft, hypothesis: Placed[Hypothesis], key: str, due: float, needed: int) -> Diagnostic:
    quantile = getattr(hypothesis.value.measure, "quantile", "")
    headline = f"{quantile} cannot be compared with {due:.0f} requests"
    help_text = f"{needed} are needed: take a lower quantile, look longer, or raise the rate"
    return draft.problem("too-few-to-compare", hypothesis.at(key), headline, help_text=help_text)


CONTROL_RULES = (no_control, no_margin, too_few_to_compare)
