"""What every measure promises beyond its settings: one estimate from one view, pure."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from chaos.spec.model import Measure
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import Bound, View


@runtime_checkable
class Estimator(Measure, Protocol):
    """A measure that can be estimated. A number that is only known to be larger than some value has an interval up to
    inf.
    """

    def estimate(self, view: View) -> Estimate:
        """The number with its interval, or why there is none. Never raises for missing evidence."""
        ...


@runtime_checkable
class CarriesBound(Protocol):
    """A measure whose bound is one of its own settings (`within`), not `at_least` or `at_most`."""

    def carried_bound(self) -> Bound:
        """The claim."""
        ...
