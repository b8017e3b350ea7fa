"""A comparison for programs: additions are free, a changed meaning raises `version`. `null` is a value that never came
or an open side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chaos.comparing.differ import Difference, differences, regressed
from chaos.comparing.page import around_that_differs
from chaos.comparing.side import Measured, Side
from chaos.verdict.document import finite

VERSION = 1


def to_json(sides: Sequence[Side], warnings: Iterable[str]) -> dict[str, Any]:
    """The document as plain JSON values."""
    found = differences(sides[0], sides[-1])
    return {
        "version": VERSION,
        "sides": [_side(side) for side in sides],
        "warnings": list(warnings),
        "regressed": regressed(found),
        "hypotheses": [_difference(difference, sides) for difference in found],
        "around": around_that_differs(sides),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "dir": side.label,
        "kind": side.kind,
        "experiment": side.experiment,
        "fingerprint": side.fingerprint,
        "seed": side.seed,
        "runs": side.runs,
        "verdict": side.verdict,
        "exit_code": side.exit_code,
        "requests": dict(side.requests),
        "during": dict(side.during),
    }


def _difference(difference: Difference, sides: Sequence[Side]) -> dict[str, Any]:
    return {
        "name": difference.name,
        "change": difference.change,
        "real": difference.real,
        "why": difference.why,
        "sides": [_measured(side.hypotheses.get(difference.name)) for side in sides],
    }


def _measured(found: Measured | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "verdict": found.truth,
        "unit": found.unit,
        "bound": dict(found.bound),
        "value": finite(found.value),
        "interval": [finite(side) for side in found.interval] if found.interval else None,
        "n": found.n,
    }
