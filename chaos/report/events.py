"""Journal records as short sentences: the lines of a live run and of a report's story."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Fields = Mapping[str, Any]


def told(kind: str, fields: Fields) -> str | None:
    """What happened in one line, or None for a record that is not worth one."""
    tell = _TELL.get(kind)
    return tell(fields) if tell else None


def _names(fields: Fields) -> str:
    return ", ".join(fields.get("targets", ())) or "nobody"


def _seen(fields: Fields, yes: str, no: str) -> str:
    return f"{fields['fault']}: {yes if fields['seen'] else no} ({fields['what']})"


def _gate(fields: Fields) -> str:
    return "gate: users are served" if fields["held"] else f"gate not met: {fields['why']}"


def _event(fields: Fields) -> str:
    about = [str(fields[key]) for key in ("dependency", "replica", "reason") if fields.get(key)]
    return f"{fields['source']}: {fields['name']} {' '.join(about)}".rstrip()


def _load_started(fields: Fields) -> str:
    return "load: " + ", ".join(f"{load['name']} {load['planned']} requests" for load in fields["loads"])


def _load_finished(fields: Fields) -> str:
    each = (f"{name} sent {load['sent']} of {load['planned']}" for name, load in fields["loads"].items())
    return "load ended: " + ", ".join(each)


def _failed(fields: Fields) -> str:
    return f"{fields['fault']}: {fields['step']} FAILED: {fields['why']}"


_TELL: Mapping[str, Callable[[Fields], str]] = {
    "gate": _gate,
    "load_started": _load_started,
    "fault_injected": lambda f: f"{f['fault']}: injected on {_names(f)}",
    "fault_confirmed": lambda f: _seen(f, "confirmed", "NOT CONFIRMED"),
    "fault_reverted": lambda f: f"{f['fault']}: reverted by {f['by']}",
    "fault_gone": lambda f: _seen(f, "gone", "NOT GONE"),
    "fault_failed": _failed,
    "event": _event,
    "guard_tripped": lambda f: f"guard {f['guard']}: {f['value']:.3g} is {f['bound']}",
    "stop_requested": lambda f: f"stopped by {f['by']}",
    "probe_failed": lambda f: f"probe {f['probe']} of {f['target']} failed: {f['why']}",
    "load_finished": _load_finished,
    "run_finished": lambda f: f"run {f['ending'].replace('_', ' ')}: {f['why']}",
}
