"""The plan: every decision taken before anything is touched, as one frozen value that prints and stores itself.

Times are seconds from the start of the load. The same experiment, inventory and seed give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.faults.fault import Fault
from chaos.inventory import Target
from chaos.spec.model import Experiment

Action = Literal["open_window", "close_window", "arm", "inject", "look", "revert"]


@dataclass(frozen=True)
class PlannedFault:
    """A fault with its drawn targets and its place in time. `lease_s` is how long the watchdog lets it live."""

    name: str
    fault: Fault
    targets: tuple[Target, ...]
    inject_at: float
    revert_at: float
    lease_s: float


@dataclass(frozen=True)
class PlannedWindow:
    """A named stretch of the run."""

    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Step:
    """One entry of the timeline; `subject` names the window or fault."""

    at: float
    action: Action
    subject: str


@dataclass(frozen=True)
class Plan:
    """What will happen to whom and when. `fingerprint` covers the file, the settings, the targets and the seed."""

    experiment: Experiment
    stack: str
    profile: str
    seed: int
    faults: tuple[PlannedFault, ...]
    windows: tuple[PlannedWindow, ...]
    steps: tuple[Step, ...]
    load_end: float
    fingerprint: str
