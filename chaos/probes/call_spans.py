"""What every part of a stack wrote down of the calls that it got and made, read to the end: the traces of a run.

Like stack_events it remembers what it has read. Spans that ended before its first look belong to someone else's run; a
part that began to count anew (it was restarted) is read again from its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from chaos.inventory import Target
from chaos.ports import Host
from chaos.probes.numbered import Entry, ask_after
from chaos.probes.probe import Reading

_MOST_PAGES = 50
"""Of one look: more than a busy part writes in a second, and a bound for one that never comes to its end."""

_TEXTS = ("trace_id", "span_id", "parent_id", "name", "peer", "outcome")
_KINDS = ("caller", "callee")


@dataclass
class _Place:
    since: float
    after: int = 0


@dataclass
class CallSpans:
    """Polls `/debug/spans?after=N`. Make a new one for each run."""

    kind: ClassVar[str] = "call_spans"
    summary: ClassVar[str] = "collects what a target wrote down of each call: trace, times, outcome, attempt, tokens"
    period_s: ClassVar[float] = 0.5
    _places: dict[str, _Place] = field(default_factory=dict)

    def applies_to(self, target: Target) -> bool:
        """Targets with a spans URL."""
        return target.spans is not None

    async def read(self, target: Target, host: Host) -> Reading:
        """New spans; `spans_last` is the number of the newest that there is, `spans_unread` how many of those were not
        read (0: all were), `spans_missed` how many were forgotten before anybody read them.
        """
        place = self._places.setdefault(target.name, _Place(since=host.clock.now()))
        found: list[Mapping[str, Any]] = []
        values: dict[str, float] = {}
        error: str | None = None
        try:
            for _ in range(_MOST_PAGES):
                page, last = await _ask(target, host, place.after)
                if last < place.after:
                    place.after = 0
                    continue
                if page and place.after and (missed := page[0]["seq"] - place.after - 1) > 0:
                    values["spans_missed"] = values.get("spans_missed", 0.0) + missed
                place.after = page[-1]["seq"] if page else last
                found += (span for span in page if span["end"] >= place.since)
                values |= {"spans_last": float(last), "spans_unread": float(last - place.after)}
                if place.after >= last:
                    break
        except ValueError as problem:
            error = str(problem)
        return Reading(self.kind, target.name, values=values, spans=tuple(found), error=error)


async def _ask(target: Target, host: Host, after: int) -> tuple[list[Entry], int]:
    """The next spans after a number, in order, and the number of the newest. Raises ValueError."""

    def spans_of(told: Any) -> list[Entry]:
        return [_span(dict(zip(told["columns"], row, strict=True)), target.name) for row in told["spans"]]

    return await ask_after(after, str(target.spans), host, who="the spans URL", entries_of=spans_of)


def _span(told: Mapping[str, Any], service: str) -> Mapping[str, Any]:
    """One row, checked. Raises KeyError, TypeError, ValueError."""
    if told["kind"] not in _KINDS:
        raise ValueError(f"a span is of a {' or a '.join(_KINDS)}, not of a {told['kind']!r}")
    return {
        **{name: str(told[name]) for name in _TEXTS},
        "seq": int(told["seq"]),
        "service": service,
        "kind": told["kind"],
        "start": float(told["start"]),
        "end": float(told["end"]),
        "attempt": int(told["attempt"]),
        "prompt_tokens": _count(told["prompt_tokens"]),
        "output_tokens": _count(told["output_tokens"]),
    }


def _count(told: Any) -> int | None:
    return None if told is None else int(told)
