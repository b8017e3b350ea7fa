"""Rules on hypotheses and guards: a claim has a bound, a place in time, a chance to fail, and enough traffic to be
shown.

The last one is arithmetic that is cheap before a run and bitter after it. A share of 99 % is upheld when the lower end
of its Wilson interval (one-sided 95 %, z = 1.645) reaches 99 %. With n requests, all good, that end is n / (n + z²):
below 268 requests no run can uphold the claim, however well it goes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chaos.spec.diagnostic import Diagnostic, within
from chaos.spec.draft import Draft, Placed
from chaos.spec.layout import has_setting, owns_bound
from chaos.spec.model import Hypothesis, Readable, Surge, Windows, takes_window
from chaos.spec.wording import shown
from chaos.units import Duration, Rate, Ratio

Z = 1.645
_Z2 = Z * Z


def no_bound(draft: Draft) -> Iterator[Diagnostic]:
    """A claim without a bound says nothing."""
    for hypothesis in draft.hypotheses:
        h = hypothesis.value
        if h.at_least is None and h.at_most is None and not owns_bound(type(h.measure)):
            help_text = "add `at_least` or `at_most`"
            yield draft.problem("no-bound", hypothesis.path, "the hypothesis has no bound", help_text=help_text)
    for guard in draft.guards:
        if guard.value.below is None and guard.value.above is None:
            yield draft.problem("no-bound", guard.path, "the guard has no bound", help_text="add `below` or `above`")


def contradicting_bounds(draft: Draft) -> Iterator[Diagnostic]:
    """Two bounds leave room between them: some value upholds a hypothesis, some value does not trip a guard."""
    for hypothesis in draft.hypotheses:
        least, most = hypothesis.value.at_least, hypothesis.value.at_most
        if least is not None and most is not None and least > most:
            headline = f"no value is at least {least} and at most {most}"
            related = {hypothesis.at("at_most"): "the other bound"}
            yield draft.problem("contradicting-bounds", hypothesis.at("at_least"), headline, related=related)
    for guard in draft.guards:
        below, above = guard.value.below, guard.value.above
        if below is not None and above is not None and below > above:
            headline = f"every value is below {below} or above {above}"
            related = {guard.at("above"): "the other bound"}
            yield draft.problem("contradicting-bounds", guard.at("below"), headline, related=related)


def cannot_fail(draft: Draft) -> Iterator[Diagnostic]:
    """A hypothesis that every run upholds tests nothing."""
    for hypothesis in draft.hypotheses:
        h = hypothesis.value
        lowest = -1.0 if h.unit == "points" else -math.inf if h.unit == "factor" and not h.compares else 0.0
        floor = h.at_least is not None and h.at_least <= lowest
        ceiling = h.at_most is not None and h.at_most >= 1 and h.unit in ("ratio", "points")
        if (floor and (ceiling or h.at_most is None)) or (ceiling and h.at_least is None):
            key = "at_least" if floor else "at_most"
            yield draft.problem(
                "cannot-fail", hypothesis.at(key), "no run can refute this", help_text="tighten the bound"
            )


def no_window(draft: Draft) -> Iterator[Diagnostic]:
    """Most measures boil down one window, so the claim says which."""
    for hypothesis in draft.hypotheses:
        if hypothesis.value.measure.needs_window and hypothesis.value.window is None:
            headline = f"measure `{hypothesis.value.measure.name}` needs a window"
            help_text = "add `window:` with the name of a fault, or `settled`"
            yield draft.problem("no-window", hypothesis.path, headline, help_text=help_text)


def window_not_used(draft: Draft) -> Iterator[Diagnostic]:
    """A measure that spans the whole run would ignore a window or a grace; silence about it would mislead."""
    for hypothesis in draft.hypotheses:
        h = hypothesis.value
        key = "window" if h.window is not None else "grace" if h.grace else None
        if key and not takes_window(h.measure):
            headline = f"measure `{h.measure.name}` spans the whole run"
            yield draft.problem("window-not-used", hypothesis.at(key), headline, help_text=f"remove `{key}`")


def measure_not_for_guards(draft: Draft) -> Iterator[Diagnostic]:
    """A guard slides a window along the run, which a measure of the whole run cannot fill."""
    for guard in draft.guards:
        if not guard.value.measure.needs_window:
            headline = f"measure `{guard.value.measure.name}` spans the whole run, a guard only seconds"
            yield draft.problem("measure-not-for-guards", guard.at("measure"), headline)


def empty_window(draft: Draft) -> Iterator[Diagnostic]:
    """A claim looks at more than an instant, grace included."""
    for hypothesis in draft.hypotheses:
        length, grace = _window_s(draft, hypothesis.value.window), hypothesis.value.grace
        if length is None or not takes_window(hypothesis.value.measure):
            continue
        if length <= grace and (length > 0 or hypothesis.value.window in Windows.__dataclass_fields__):
            yield draft.problem(
                "empty-window",
                hypothesis.at("grace" if grace else "window"),
                f"nothing is left of the {Duration(length)} of window {shown(str(hypothesis.value.window))}",
                related=_window_place(draft, hypothesis.value.window),
            )
    for guard in draft.guards:
        if guard.value.over <= 0:
            yield draft.problem("empty-window", guard.at("over"), "the guard looks at a window of 0s")


def no_minimum_samples(draft: Draft) -> Iterator[Diagnostic]:
    """A share is claimed only where enough requests are due to show it."""
    for hypothesis in draft.hypotheses:
        if hypothesis.value.unit not in ("ratio", "points"):
            continue
        seen = requests_due(draft, hypothesis.value, hypothesis.value.window)
        # Two clean windows show a small difference of shares with as many requests as one shows a small share.
        for key in ("at_most",) if hypothesis.value.compares else ("at_least", "at_most"):
            bound = getattr(hypothesis.value, key)
            if bound is None or seen is None or not 0 < _strictness(key, bound) <= 1:
                continue
            if seen[0] / (seen[0] + _Z2) < _strictness(key, bound):
                yield _too_few(draft, hypothesis, key, *seen)


def bad_query(draft: Draft) -> Iterator[Diagnostic]:
    """A query is read where it is written, not in the middle of a verdict."""
    for hypothesis in draft.hypotheses:
        measure = hypothesis.value.measure
        wrong = measure.misread() if isinstance(measure, Readable) else None
        if wrong is not None:
            place = hypothesis.at(wrong.key)
            span = within(draft.places.at(place), str(getattr(measure, wrong.key)), wrong.at, wrong.length)
            yield Diagnostic("bad-query", wrong.headline, span, place, wrong.help)


def _strictness(key: str, bound: float) -> float:
    """The share of requests that must come out right. `at_most` 1 % asks for the same as `at_least` 99 %."""
    return bound if key == "at_least" else 1 - bound


def _too_few(draft: Draft, hypothesis: Placed[Hypothesis], key: str, requests: float, rate: float) -> Diagnostic:
    bound, length = Ratio(getattr(hypothesis.value, key)), requests / rate
    share = _strictness(key, bound)
    if share == 1:
        headline, help_text = f"no number of requests can prove {bound}", "leave room for chance, such as 99% or 1%"
    else:
        needed = math.ceil(share * _Z2 / (1 - share))
        headline = f"{key} {bound} cannot be shown with {requests:.0f} requests"
        help_text = f"{needed} are needed: look at {Duration(needed / rate)} or more, or raise the rate"
    return draft.problem(
        "no-minimum-samples",
        hypothesis.at(key),
        headline,
        help_text=help_text,
        related=_window_place(draft, hypothesis.value.window, f"{Rate(rate)} for {Duration(length)}"),
    )


def requests_due(
    draft: Draft, hypothesis: Hypothesis, window: str | None, load: str | None = None
) -> tuple[float, float] | None:
    """Requests of the load, by default the hypothesis' own, that are due in the window, and their rate; None when it
    cannot be known.
    """
    measure, length = hypothesis.measure, _window_s(draft, window)
    if not has_setting(type(measure), "load") or length is None:
        return None
    if not draft.load_names.complete or len(draft.loads) != len(draft.load_names.by_path):
        return None
    wanted = load or getattr(measure, "load", None)
    grace = hypothesis.grace if window == hypothesis.window else 0.0
    loads = [each.value for each in draft.loads if wanted in (None, each.value.name)]
    rate = sum(each.rate * _mean_factor(draft, each.surge, window, grace) for each in loads)
    looked_at = length - grace
    return (rate * looked_at, rate) if rate > 0 and looked_at > 0 else None


def _mean_factor(draft: Draft, surge: Surge | None, window: str | None, grace: float) -> float:
    """How many times the rate arrives, on average over what is looked at of a fault's window; elsewhere 1."""
    inside = [fault.value for fault in draft.faults if window in ("fault", fault.value.name)]
    if surge is None or len(inside) != 1:
        return 1.0
    start, end = inside[0].at + grace, inside[0].at + inside[0].for_
    overlap = max(0.0, min(end, surge.at + surge.for_) - max(start, surge.at))
    return 1.0 + (surge.times - 1) * overlap / (end - start) if end > start else 1.0


def _window_s(draft: Draft, window: str | None) -> float | None:
    """How long a window lasts by plan; None for the gate, and when it cannot be known."""
    if window in Windows.__dataclass_fields__:
        return getattr(draft.windows, window, None) if window else None
    if not draft.fault_names.complete or len(draft.faults) != len(draft.fault_names.by_path):
        return None
    inside = [fault.value for fault in draft.faults if window in ("fault", fault.value.name)]
    return _covered([(fault.at, fault.at + fault.for_) for fault in inside]) if inside else None


def _covered(stretches: list[tuple[float, float]]) -> float:
    """Time covered by at least one of the stretches."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(stretches):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _window_place(draft: Draft, window: str | None, label: str = "") -> dict[str, str]:
    """Where the length of a window is written, for a message about two places."""
    if window in Windows.__dataclass_fields__:
        place = f"windows.{window}"
        return {place: label or "lasts this long"} if place in draft.places.spans else {}
    fault = next((f for f in draft.faults if f.value.name == window), None)
    return {fault.at("for"): label or "lasts this long"} if fault else {}


CLAIM_RULES = (
    no_bound,
    contradicting_bounds,
    cannot_fail,
    no_window,
    window_not_used,
    measure_not_for_guards,
    empty_window,
    no_minimum_samples,
    bad_query,
)
