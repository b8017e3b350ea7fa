"""Who is harmed: the seeded pick of targets, and the refusal of a pick that is empty or too wide.

Targets come from the inventory and from nowhere else. An empty selection is a problem, never "all".
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from chaos.inventory import Inventory, Target
from chaos.spec.model import BlastRadius, FaultEntry, Selector


@dataclass(frozen=True)
class PlanProblem:
    """Why a checked experiment cannot be planned on this stack. `path` is the data path in the file it points at."""

    code: str
    headline: str
    path: str
    help: str | None = None


def select(entry: FaultEntry, inventory: Inventory, draw: random.Random) -> tuple[Target, ...]:
    """The targets of one fault in inventory order; empty when nothing matches. A fault without a selector has none."""
    wanted = entry.target
    if wanted is None:
        return ()
    fitting = tuple(t for t in inventory.targets if _fits(t, wanted))
    if wanted.node is not None:
        fitting = _whole_node(fitting, inventory, wanted, draw)
    count = wanted.count or (len(fitting) if wanted.node is not None else 1)
    if len(fitting) <= count:
        return fitting
    drawn = draw.sample(range(len(fitting)), count)
    return tuple(fitting[i] for i in sorted(drawn))


def _fits(target: Target, wanted: Selector) -> bool:
    node_fits = target.node is not None if wanted.node == "any" else wanted.node in (None, target.node)
    return wanted.role in (None, target.role) and wanted.name in (None, target.name) and node_fits


def _whole_node(
    fitting: tuple[Target, ...], inventory: Inventory, wanted: Selector, draw: random.Random
) -> tuple[Target, ...]:
    """Everything that lives on one node that holds a fitting target; a node does not fail in part."""
    nodes = sorted({t.node for t in fitting if t.node is not None})
    if not nodes:
        return ()
    node = draw.choice(nodes) if wanted.node == "any" else nodes[0]
    return tuple(t for t in inventory.targets if t.node == node)


def selection_problems(
    entry: FaultEntry, targets: tuple[Target, ...], inventory: Inventory, radius: BlastRadius, path: str
) -> tuple[PlanProblem, ...]:
    """What forbids harming these targets: nobody there, too many, a role outside the blast radius, a missing handle."""
    if entry.target is None:
        return _handle_problems(entry, targets, path)
    if not targets:
        return (_nobody(entry.target, inventory, f"{path}.target"),)
    wanted = entry.target.count or 1
    problems: list[PlanProblem] = []
    if len(targets) < wanted:
        headline = f"fault `{entry.name}` asks for {wanted} targets, only {len(targets)} match"
        problems.append(PlanProblem("too-few-targets", headline, f"{path}.target", f"they are: {_names(targets)}"))
    if len(targets) > radius.targets:
        headline = f"fault `{entry.name}` would harm {len(targets)} targets, the blast radius allows {radius.targets}"
        remedy = f"they are {_names(targets)}; narrow the target or raise blast_radius.targets"
        problems.append(PlanProblem("wider-than-blast-radius", headline, f"{path}.target", remedy))
    dead = tuple(t for t in targets if not t.pids)
    if dead:
        headline = f"{_names(dead)} is not running, so nothing would be proved by harming it"
        problems.append(PlanProblem("dead-target", headline, f"{path}.target", "wait until `brownout status` shows it"))
    strangers = sorted({t.role for t in targets} - set(radius.roles))
    if strangers:
        headline = f"fault `{entry.name}` would harm the role `{strangers[0]}`, which is outside the blast radius"
        remedy = f"add it to blast_radius.roles, or pick another of: {_names(targets)}"
        problems.append(PlanProblem("role-outside-blast-radius", headline, f"{path}.target", remedy))
    living = tuple(t for t in targets if t.pids)
    return (*problems, *(_handle_problems(entry, living, path) if living else ()))


def _handle_problems(entry: FaultEntry, targets: tuple[Target, ...], path: str) -> tuple[PlanProblem, ...]:
    return tuple(PlanProblem("cannot-be-harmed-so", why, path) for why in entry.fault.problems(targets))


def _nobody(wanted: Selector, inventory: Inventory, path: str) -> PlanProblem:
    said = ", ".join(
        f"{k} `{v}`" for k, v in (("role", wanted.role), ("name", wanted.name), ("node", wanted.node)) if v
    )
    there = ", ".join(f"{t.name} ({t.role}{f' on {t.node}' if t.node else ''})" for t in inventory.targets)
    return PlanProblem("no-target", f"nothing with {said} is running", path, f"the stack has: {there or 'nothing'}")


def _names(targets: tuple[Target, ...]) -> str:
    return ", ".join(t.name for t in targets)
