"""Experiment, inventory and seed to a plan, or to every reason why not; the same input gives the same bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from typing import Any

from chaos.inventory import Inventory, Target
from chaos.plan.plan import Plan, PlannedFault
from chaos.plan.targeting import PlanProblem, select, selection_problems
from chaos.plan.timeline import ARM_LEAD_S, LEASE_SLACK_S, steps_of, windows_of
from chaos.spec.model import Experiment, FaultEntry

MAX_RUN_S = 6 * 3600.0
"""No run is longer than this, whatever a file says."""


def make_plan(experiment: Experiment, inventory: Inventory, seed: int) -> Plan | tuple[PlanProblem, ...]:
    """Draw targets, lay out the timeline, check it against the blast radius."""
    drawn = tuple((entry, select(entry, inventory, _draw(seed, entry))) for entry in experiment.faults)
    problems = [
        problem
        for i, (entry, targets) in enumerate(drawn)
        for problem in selection_problems(entry, targets, inventory, experiment.blast_radius, f"faults.{i}")
    ]
    faults = tuple(_planned(entry, targets, experiment.windows.baseline) for entry, targets in drawn)
    problems += _crowding(faults, experiment.blast_radius.targets) if not problems else []
    windows = windows_of(experiment.windows, faults)
    if windows[-1].end > MAX_RUN_S:
        problems.append(PlanProblem("run-too-long", f"the run would last {windows[-1].end:.0f}s", "windows", None))
    if problems:
        return tuple(problems)
    return Plan(
        experiment=experiment,
        stack=inventory.stack,
        profile=inventory.profile,
        seed=seed,
        faults=faults,
        windows=windows,
        steps=steps_of(windows, faults),
        load_end=windows[-1].end,
        fingerprint=fingerprint(experiment, faults, inventory, seed),
    )


def _draw(seed: int, entry: FaultEntry) -> random.Random:
    """One stream a fault, so that adding a fault never moves another's targets."""
    return random.Random(hashlib.sha256(f"{seed}/target/{entry.name}".encode()).digest())


def _planned(entry: FaultEntry, targets: tuple[Target, ...], baseline_s: float) -> PlannedFault:
    start = float(baseline_s) + float(entry.at)
    end = start + float(entry.for_)
    lease_s = ARM_LEAD_S + float(entry.for_) + LEASE_SLACK_S
    return PlannedFault(entry.name, entry.fault, targets, start, end, lease_s)


def _crowding(faults: tuple[PlannedFault, ...], most: int) -> list[PlanProblem]:
    """Faults that overlap in time share one blast radius."""
    problems = []
    for i, fault in enumerate(faults):
        together = {t.name for other in faults if _overlap(fault, other) for t in other.targets}
        alone = {t.name for t in fault.targets}
        if len(alone) <= most < len(together):
            headline = (
                f"fault `{fault.name}` and those at the same time would harm {len(together)} targets, "
                f"the blast radius allows {most}"
            )
            problems.append(PlanProblem("wider-than-blast-radius", headline, f"faults.{i}", "move them apart in time"))
    return problems[:1]


def _overlap(one: PlannedFault, other: PlannedFault) -> bool:
    return one.inject_at < other.revert_at and other.inject_at < one.revert_at


def fingerprint(experiment: Experiment, faults: tuple[PlannedFault, ...], inventory: Inventory, seed: int) -> str:
    """SHA-256 over everything that decides what this run does to whom; an approval names it."""
    decided = {
        "experiment": experiment.name,
        "settings": _plain(experiment),
        "targets": {f.name: [t.name for t in f.targets] for f in faults},
        "profile": inventory.profile,
        "environment": inventory.environment,
        "seed": seed,
    }
    return "sha256:" + hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()


_NOT_A_SETTING = frozenset({"path", "text", "lines", "name"})


def _plain(value: Any) -> Any:
    """A frozen value as JSON data; faults and measures carry their kind."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = getattr(value, "kind", None) or getattr(type(value), "name", None)
        plain = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        if "text" in plain and "lines" in plain:
            plain = {k: v for k, v in plain.items() if k not in _NOT_A_SETTING}
        return {"is": named, **plain} if isinstance(named, str) else plain
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value


def to_json(plan: Plan) -> dict[str, Any]:
    """`plan.json`: everything above as plain data, times in seconds from the start of the load."""
    return {
        "version": 1,
        "experiment": plan.experiment.name,
        "title": plan.experiment.title,
        "stack": plan.stack,
        "profile": plan.profile,
        "seed": plan.seed,
        "fingerprint": plan.fingerprint,
        "load_end": plan.load_end,
        "faults": [_fault_json(f) for f in plan.faults],
        "windows": [{"name": w.name, "start": w.start, "end": w.end} for w in plan.windows],
        "steps": [{"at": s.at, "action": s.action, "subject": s.subject} for s in plan.steps],
    }


def _fault_json(fault: PlannedFault) -> dict[str, Any]:
    return {
        "name": fault.name,
        "kind": fault.fault.kind,
        "settings": _plain(fault.fault),
        "targets": [t.name for t in fault.targets],
        "inject_at": fault.inject_at,
        "revert_at": fault.revert_at,
        "lease_s": fault.lease_s,
        "fidelity": fault.fault.fidelity,
        "observer": fault.fault.observer,
    }
