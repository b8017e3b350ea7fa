"""The one place that joins real catalogs and adapters to the stages: files to experiments, experiments to plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaos.adapters.files import LocalFiles
from chaos.adapters.machine import has
from chaos.faults.catalog import FAULTS
from chaos.inventory import Inventory, Target
from chaos.load.prompts import prompt_sets, prompts_dirs
from chaos.paths import project_root, shown
from chaos.plan.make import make_plan
from chaos.plan.plan import Plan
from chaos.plan.targeting import PlanProblem
from chaos.ports import Host, Need
from chaos.run.lease import LeaseStore
from chaos.spec.catalog import Catalog
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.model import Experiment
from chaos.spec.parse import locate, name_of, parse
from chaos.stacks.local import LocalStack
from chaos.verdict.live import guard_problem
from chaos.verdict.measures.catalog import MEASURES

STANDING = "bundled"
"""Name of the stack that `brownout up` starts and that `run` uses when it is there."""


def catalog_for(path: Path | None) -> Catalog:
    """What an experiment at `path` may name: all faults and measures, the prompt sets and runbooks of its project."""
    root = project_root(path) if path is not None else None
    pages = root / "runbooks" if root else None
    runbooks = frozenset(p.stem for p in pages.glob("*.md") if p.stem != "README") if pages and pages.is_dir() else None
    return Catalog(FAULTS, MEASURES, prompts=prompt_sets(prompts_dirs(path)), runbooks=runbooks)


def read_experiment(path: Path, here: Path, overrides: tuple[str, ...] = ()) -> Experiment | tuple[Diagnostic, ...]:
    """An experiment file, checked, or all that is wrong with it. The copy in a run directory keeps the name under which
    it was run, so that the replay command of a report gives the same plan. Raises OSError.
    """
    label = shown(path, here)
    name = _name_when_run(path) or name_of(str(path.absolute()))
    return parse(path.read_bytes(), label, catalog_for(path), name=name, overrides=overrides)


def _name_when_run(path: Path) -> str | None:
    """What plan.json beside the file calls the experiment; None where there is no such plan."""
    try:
        named = json.loads((path.parent / "plan.json").read_text(encoding="utf-8"))["experiment"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return named if path.name == "experiment.yaml" and isinstance(named, str) else None


def planned(experiment: Experiment, inventory: Inventory, seed: int) -> Plan | tuple[Diagnostic, ...]:
    """The plan, or why there is none, pointing at the lines of the file."""
    unwatchable = tuple(
        PlanProblem("not-a-guard", why, f"guards.{i}")
        for i, guard in enumerate(experiment.guards)
        if (why := guard_problem(guard.measure))
    )
    plan = (*unwatchable, *missing_needs(experiment, has)) or make_plan(experiment, inventory, seed)
    plan = (missing_with_handles(plan, has) or plan) if isinstance(plan, Plan) else plan
    return plan if isinstance(plan, Plan) else tuple(_pointed(problem, experiment) for problem in plan)


def missing_needs(experiment: Experiment, has: Callable[[Need], bool]) -> tuple[PlanProblem, ...]:
    """What the faults and measures of an experiment cannot do without and this machine has not, each with how to get
    it.
    """
    wanted = [(entry.fault.kind, f"faults.{i}", entry.fault.needs) for i, entry in enumerate(experiment.faults)]
    wanted += [
        (hypothesis.measure.name, f"hypotheses.{i}", getattr(hypothesis.measure, "needs", ()))
        for i, hypothesis in enumerate(experiment.hypotheses)
    ]
    return tuple(
        PlanProblem("missing-need", f"`{name}` needs {need}, which is not here", path, need.how)
        for name, path, needs in wanted
        for need in needs
        if not has(need)
    )


def missing_with_handles(plan: Plan, has: Callable[[Need], bool]) -> tuple[PlanProblem, ...]:
    """What faults need only because of a handle of their targets (`needs_with`), and this machine has not."""
    return tuple(
        PlanProblem("missing-need", f"`{entry.fault.kind}` needs {need} for {target.name}", f"faults.{i}", need.how)
        for i, entry in enumerate(plan.faults)
        for target in entry.targets
        for handle, needs in getattr(entry.fault, "needs_with", {}).items()
        if target.handles.get(handle) is not None
        for need in needs
        if not has(need)
    )


def dead_targets(plan: Plan, host: Host) -> tuple[Diagnostic, ...]:
    """Targets of the plan that are dead before anything was done to them: harming them would prove nothing."""
    return tuple(
        _pointed(PlanProblem("dead-target", f"{target.name} is not running", f"faults.{i}", _WAKE), plan.experiment)
        for i, fault in enumerate(plan.faults)
        for target in fault.targets
        if not _alive(target, host)
    )


_WAKE = "wait until `brownout status` shows it, or bring the stack up again"


def _alive(target: Target, host: Host) -> bool:
    return bool(target.pids) and all(host.processes.identify(pid) is not None for pid in target.pids)


def _pointed(problem: PlanProblem, experiment: Experiment) -> Diagnostic:
    """A planning problem on its place in the file, in the form of every other diagnostic."""
    span = locate(experiment, problem.path)
    return Diagnostic(problem.code, problem.headline, span, problem.path, problem.help)


def standing_stack(state: Path) -> LocalStack:
    """The stack that `brownout up` starts."""
    return LocalStack(state / "stacks" / STANDING)


def lease_store(state: Path) -> LeaseStore:
    """All leases of this state folder."""
    return LeaseStore(state / "leases", LocalFiles())


def faults_in_force(state: Path, host: Host) -> list[Mapping[str, Any]]:
    """The leases on disk, in the shape of `faults_in_force` (DESIGN section 9)."""
    now, wall = host.clock.now(), host.clock.wall()
    return [
        {
            "name": lease.fault,
            "kind": lease.kind,
            "targets": list(lease.targets),
            "since": _stamp(wall - (now - lease.granted_at)),
            "lease_until": _stamp(wall + (lease.lease_until - now)),
        }
        for lease in lease_store(state).list().leases
    ]


def unreadable_leases(state: Path) -> list[str]:
    """Lease files that cannot be read, each with why: some harm may be in place that nobody can name."""
    return [f"{damaged.path}: {damaged.why}" for damaged in lease_store(state).list().damaged]


def _stamp(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
