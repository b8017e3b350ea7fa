"""Journal records as short sentences: the one story that a live view and a report tell alike.

A stack in trouble flaps: a breaker opens, tries, opens again, for as long as the fault lasts. The first round is told,
the rest is held back and told as one line with counts, so that the line which matters is not the thirtieth.

    opened  half_open  opened  half_open  opened  half_open  closed
    told    told       '------- held, one line ------------' told
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chaos.journal.record import Record
from chaos.report.plain import plain

Fields = Mapping[str, Any]
Tone = Literal["harm", "relief", "stack", "run"]


@dataclass(frozen=True)
class Moment:
    """Something that happened, `at` seconds after the start of the load; None: before there was load."""

    at: float | None
    tone: Tone
    text: str

    @property
    def clock(self) -> str:
        """`6.08s`, or `before`."""
        return "before" if self.at is None else f"{self.at:.2f}s"


@dataclass
class Story:
    """Hears records in the order of the journal and gives back what is worth telling."""

    _zero: float | None = None
    _subjects: dict[tuple[str, ...], _Flapping] = field(default_factory=dict)

    def hear(self, t: float, kind: str, fields: Fields) -> tuple[Moment, ...]:
        """What this record adds to the story: nothing, a moment, or what was held back and a moment."""
        if kind == "load_started":
            self._zero = float(fields.get("at", t))
        tell = _TELL.get(kind)
        text = tell[1](fields) if tell else None
        if tell is None or text is None:
            return ()
        moment = Moment(self._since_load(_happened_at(t, fields)), tell[0], plain(text))
        if kind == "event":
            return self._subjects.setdefault(_subject(fields), _Flapping(fields)).hear(_what(fields), moment)
        return (*(self.rest() if kind == "run_finished" else ()), moment)

    def rest(self) -> tuple[Moment, ...]:
        """What is still held back; for the end of a journal."""
        return tuple(moment for flapping in self._subjects.values() for moment in flapping.let_go())

    def _since_load(self, t: float) -> float | None:
        return None if self._zero is None or t < self._zero else t - self._zero


def whole_story(records: tuple[Record, ...]) -> tuple[Moment, ...]:
    """The story of a finished journal, in the order in which things happened."""
    story = Story()
    told = [moment for record in records for moment in story.hear(record.t, record.kind, record.fields)]
    return tuple(sorted((*told, *story.rest()), key=lambda moment: -1.0 if moment.at is None else moment.at))


@dataclass
class _Flapping:
    """One thing that a stack tells about: what it said last, and the repetitions that wait to be counted."""

    about: Fields
    _last_two: tuple[str, ...] = ()
    _held: list[tuple[str, Moment]] = field(default_factory=list)

    def hear(self, what: str, moment: Moment) -> tuple[Moment, ...]:
        """Hold back what was told two events ago already; anything else ends the row of repetitions."""
        repeated = len(self._last_two) == 2 and what == self._last_two[0]
        self._last_two = (*self._last_two[-1:], what)
        if repeated:
            self._held.append((what, moment))
            return ()
        return (*self.let_go(), moment)

    def let_go(self) -> tuple[Moment, ...]:
        """One line for everything held back."""
        held, self._held = self._held, []
        if len(held) < 2:
            return tuple(moment for _, moment in held)
        counts = Counter(what for what, _ in held)
        rounds = ", ".join(f"{count} more {what}" for what, count in counts.items())
        first, last = held[0][1], held[-1][1]
        return (Moment(first.at, "stack", plain(f"{_who(self.about)}: {rounds}, the last at {last.clock}")),)


def _happened_at(t: float, fields: Fields) -> float:
    """An event has the stack's own time; every other record has the time at which it was written."""
    at = fields.get("at")
    return t if at is None else float(at)


def _subject(fields: Fields) -> tuple[str, ...]:
    return tuple(str(fields.get(key)) for key in ("source", "dependency", "replica"))


def _who(fields: Fields) -> str:
    about = (fields.get("dependency"), fields.get("replica"))
    return ": ".join((str(fields.get("source", "stack")), " ".join(str(name) for name in about if name))).rstrip(": ")


def _what(fields: Fields) -> str:
    reason = fields.get("reason")
    return f"{fields.get('name')} ({reason})" if reason else str(fields.get("name"))


def _names(fields: Fields) -> str:
    return ", ".join(fields.get("targets", ())) or "nothing"


def _seen(yes: str, no: str) -> Callable[[Fields], str]:
    return lambda f: f"{f['fault']}: {yes if f.get('seen') else no}: {f.get('what')}"


def _gate(fields: Fields) -> str:
    return "gate: users are served" if fields.get("held") else f"gate NOT MET: {fields.get('why')}"


def _still(fields: Fields) -> str | None:
    """Only the bad news: that a confirmed fault went on holding is what everybody expects."""
    return None if fields.get("seen") else f"{fields['fault']}: NO LONGER THERE before its revert: {fields.get('what')}"


def _load_started(fields: Fields) -> str:
    return "load begins: " + ", ".join(f"{load['name']}, {load['planned']} requests" for load in fields["loads"])


def _load_finished(fields: Fields) -> str:
    each = (f"{name} sent {load['sent']} of {load['planned']}" for name, load in fields["loads"].items())
    return "load ended: " + ", ".join(each)


def _guard(fields: Fields) -> str:
    value = fields.get("value")
    told = f"{value:.3g}" if isinstance(value, float) else value
    sure = ""
    if "likelihood_ratio" in fields:
        sure = f"; {fields['samples']} outcomes, likelihood ratio {fields['likelihood_ratio']:.3g}"
    return f"guard TRIPPED: {fields.get('guard')} was {told}, wanted {fields.get('bound')}{sure}"


def _finished(fields: Fields) -> str:
    why = fields.get("why")
    return f"run {str(fields.get('ending')).replace('_', ' ')}" + (f": {why}" if why else "")


def _event(fields: Fields) -> str | None:
    """Records of single calls are evidence for the measures, not news."""
    return None if fields.get("name") in _SINGLE else f"{_who(fields)}: {_what(fields)}"


_SINGLE = ("tool_call", "side_effect", "document_stored", "document_gone")

_TELL: Mapping[str, tuple[Tone, Callable[[Fields], str | None]]] = {
    "gate": ("run", _gate),
    "load_started": ("run", _load_started),
    "fault_injected": ("harm", lambda f: f"{f['fault']}: {f.get('fault_kind')} injected on {_names(f)}"),
    "fault_confirmed": ("harm", _seen("confirmed", "NOT CONFIRMED")),
    "fault_still": ("harm", _still),
    "fault_reverted": ("relief", lambda f: f"{f['fault']}: reverted by {f.get('by')}"),
    "fault_gone": ("relief", _seen("seen gone", "NOT SEEN GONE")),
    "fault_failed": ("harm", lambda f: f"{f['fault']}: {f.get('step')} FAILED: {f.get('why')}"),
    "event": ("stack", _event),
    "guard_tripped": ("run", _guard),
    "stop_requested": ("run", lambda f: f"stop asked for by {f.get('by')}"),
    "load_finished": ("run", _load_finished),
    "run_finished": ("run", _finished),
}
"""A failed probe is not told: while its target is broken it must fail, and where it matters the verdict says so."""
