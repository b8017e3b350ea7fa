"""Verdict values, the order in which they win, and the exit codes.

A verdict is upheld, refuted or inconclusive. Preconditions come first: when one fails the run is inconclusive whatever
the numbers say. Only then do hypotheses merge: refuted over inconclusive over upheld.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Truth = Literal["upheld", "refuted", "inconclusive"]

UPHELD, REFUTED, INCONCLUSIVE, STOPPED, NOT_REVERTED, BAD_INPUT, HARNESS_ERROR = 0, 1, 2, 3, 4, 64, 70
_WORST_FIRST = (NOT_REVERTED, HARNESS_ERROR, BAD_INPUT, STOPPED, REFUTED, INCONCLUSIVE, UPHELD)
CODE_OF_ENDING: Mapping[str, int] = {
    "completed": UPHELD,
    "decided": UPHELD,  # what was decided the verdict says
    "cannot_inject": INCONCLUSIVE,
    "stopped": STOPPED,
    "gate_not_met": STOPPED,
    "failed": HARNESS_ERROR,
}
"""Exit code that the ending of a run asks for, whatever was judged."""
_CODE: Mapping[Truth, int] = {"upheld": UPHELD, "refuted": REFUTED, "inconclusive": INCONCLUSIVE}


def merge(truths: Iterable[Truth]) -> Truth:
    """Refuted over inconclusive over upheld; nothing at all is inconclusive."""
    found = set(truths)
    if "refuted" in found:
        return "refuted"
    return "upheld" if found == {"upheld"} else "inconclusive"


def exit_code_of(truth: Truth) -> int:
    """0, 1 or 2."""
    return _CODE[truth]


def worst(codes: Iterable[int]) -> int:
    """The exit code that wins; 0 for none."""
    found = set(codes)
    return next((code for code in _WORST_FIRST if code in found), UPHELD)


@dataclass(frozen=True)
class Estimate:
    """What a measure found: a value with its interval and sample size, or why there is none.

    `to_settle` says in one sentence what would make an inconclusive answer conclusive when the measure itself knows.
    `records` names a handful of what it rests on, in words for people: `journal 41`, `request chat/17 (trace 4b1c…)`.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    n: int = 0
    missing: str | None = None
    detail: str = ""
    to_settle: str | None = None
    records: tuple[str, ...] = ()


@dataclass(frozen=True)
class Precondition:
    """Something that must be true before any number means anything."""

    name: str
    held: bool
    why: str


@dataclass(frozen=True)
class FaultProof:
    """What is known about one fault; times in seconds since the run began.

    `unseen_first_s` is from the inject to the look that saw it first, `unseen_last_s` from the last look that saw it to
    the beginning of the revert; None where there was no such look.
    """

    name: str
    kind: str
    targets: tuple[str, ...]
    fidelity: str
    injected_at: float | None
    confirmed: bool
    observer: str
    what: str
    reverted_at: float | None
    reverted_by: str | None
    gone: bool
    lateness_s: float | None = None
    unseen_first_s: float | None = None
    unseen_last_s: float | None = None


@dataclass(frozen=True)
class Judged:
    """One hypothesis with its answer; `records` as in Estimate."""

    name: str
    verdict: Truth
    measure: str
    unit: str
    window: str | None
    value: float | None
    interval: tuple[float, float] | None
    n: int
    bound: Mapping[str, float]
    why: str
    to_settle: str | None = None
    records: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The judgement of one run; `to_json` in chaos.verdict.document has the stable shape."""

    run: str
    experiment: str
    title: str
    fingerprint: str
    seed: int
    profile: str
    weaknesses: tuple[str, ...]
    verdict: Truth
    exit_code: int
    why: str
    preconditions: tuple[Precondition, ...]
    faults: tuple[FaultProof, ...]
    hypotheses: tuple[Judged, ...]
    requests: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
