"""The machine in one sentence: how late timers were, what neighbours took, how many tasks wanted a core.

It proves nothing and refutes nothing; it tells a reader whether a doubtful number may be the machine's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.journal.evidence import Evidence
from chaos.verdict.wording import say


def machine(evidence: Evidence) -> str | None:
    """`timers 200us late p50, 14ms p99; 0% steal; load 1.9 of 2 cores`; None where nobody measured it."""
    noise = evidence.environment.get("noise")
    if not isinstance(noise, Mapping):
        return None
    parts = (_timers(noise), _steal(noise), _load(noise, evidence.environment.get("cores")))
    return "; ".join(part for part in parts if part) or None


def _of(noise: Mapping[str, Any], name: str, share: str) -> float | None:
    found = noise.get(name)
    value = found.get(share) if isinstance(found, Mapping) else None
    return float(value) if isinstance(value, int | float) else None


def _timers(noise: Mapping[str, Any]) -> str | None:
    usual, tail = _of(noise, "timer_late_s", "p50"), _of(noise, "timer_late_s", "p99")
    if usual is None or tail is None:
        return None
    return f"timers {say(round(usual, 4), 'duration')} late p50, {say(round(tail, 4), 'duration')} p99"


def _steal(noise: Mapping[str, Any]) -> str | None:
    usual, most = _of(noise, "steal_share", "p50"), _of(noise, "steal_share", "max")
    if usual is None or most is None:
        return None
    worst = f", {most:.0%} in the worst second" if round(most, 2) > round(usual, 2) else ""
    return f"{usual:.0%} steal{worst}"


def _load(noise: Mapping[str, Any], cores: object) -> str | None:
    load = _of(noise, "load_average", "p50")
    return None if load is None else f"load {load:.1f} of {cores} cores"
