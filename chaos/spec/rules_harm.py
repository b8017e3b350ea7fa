"""Rules on harm: who may be hit, how many, for how long. The drawn targets are checked again when the inventory is
known.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.spec.diagnostic import Diagnostic
from chaos.spec.draft import Draft
from chaos.spec.rules_names import CONTROL_KIND
from chaos.spec.wording import listed, shown
from chaos.units import Duration

_PROMPTED = ("chat", "rag")


def fault_exceeds_blast_radius(draft: Draft) -> Iterator[Diagnostic]:
    """No fault lasts longer than the blast radius allows."""
    radius = draft.blast_radius
    for fault in draft.faults if radius else ():
        if radius and fault.value.for_ > radius.duration:
            yield draft.problem(
                "fault-exceeds-blast-radius",
                fault.at("for"),
                f"a fault of {fault.value.for_} is longer than the blast radius allows",
                label=f"asks for {fault.value.for_}",
                related={"blast_radius.duration": "limit set here"},
                help_text=f"shorten it to at most {radius.duration}, or raise blast_radius.duration",
            )


def role_outside_blast_radius(draft: Draft) -> Iterator[Diagnostic]:
    """A fault aims only at roles inside the blast radius."""
    radius = draft.blast_radius
    for fault in draft.faults if radius else ():
        role = fault.value.target.role if fault.value.target else None
        if radius and role is not None and role not in radius.roles:
            allowed = f"aim at {listed(radius.roles)}, or" if radius.roles else "remove the fault, or"
            yield draft.problem(
                "role-outside-blast-radius",
                fault.at("target.role"),
                f"role {shown(role)} is outside the blast radius",
                related={"blast_radius.roles": "roles that may be harmed"},
                help_text=f"{allowed} add it to blast_radius.roles",
            )


def count_exceeds_blast_radius(draft: Draft) -> Iterator[Diagnostic]:
    """A fault asks for no more targets than the blast radius allows; without `count` it asks for one."""
    radius = draft.blast_radius
    for fault in draft.faults if radius else ():
        target = fault.value.target
        count = (target.count or 1) if target else 0
        if radius and target and count > radius.targets:
            yield draft.problem(
                "count-exceeds-blast-radius",
                fault.at("target.count"),
                f"{count} targets are more than the blast radius allows",
                label=f"asks for {count}",
                related={"blast_radius.targets": f"at most {radius.targets}"},
            )


def no_target(draft: Draft) -> Iterator[Diagnostic]:
    """A fault says whom it harms; only the control may leave it out."""
    for fault in draft.faults:
        target = fault.value.target
        if target is None and fault.value.kind != CONTROL_KIND:
            help_text = "add `target: {role: …}`"
            yield draft.problem("no-target", fault.path, "the fault has no target", help_text=help_text)
        elif target is not None and not (target.role or target.name or target.node):
            help_text = "add `role`, `name` or `node`"
            yield draft.problem("no-target", fault.at("target"), "the target selects nobody", help_text=help_text)


def empty_fault(draft: Draft) -> Iterator[Diagnostic]:
    """A fault lasts for some time."""
    for fault in draft.faults:
        if fault.value.for_ <= 0:
            yield draft.problem(
                "empty-fault", fault.at("for"), "the fault lasts 0s", help_text="write for example `10s`"
            )


def no_traffic(draft: Draft) -> Iterator[Diagnostic]:
    """A load sends something."""
    for load in draft.loads:
        if load.value.rate <= 0:
            yield draft.problem(
                "no-traffic", load.at("rate"), "the load sends nothing", help_text="write for example `20/s`"
            )


def surge_outlasts_load(draft: Draft) -> Iterator[Diagnostic]:
    """A surge is over before the load is, or part of it would never be sent."""
    if draft.windows is None or not draft.faults or len(draft.faults) != len(draft.fault_names.by_path):
        return
    end = max(fault.value.at + fault.value.for_ for fault in draft.faults)
    end += draft.windows.recovery + draft.windows.settled
    for load in draft.loads:
        surge = load.value.surge
        if surge is not None and surge.at + surge.for_ > end:
            yield draft.problem(
                "surge-outlasts-load",
                load.at("surge"),
                f"the surge ends {Duration(surge.at + surge.for_ - end)} after the load",
                help_text=f"after the baseline the load lasts {Duration(end)}",
            )


def no_prompt_to_lengthen(draft: Draft) -> Iterator[Diagnostic]:
    """Only a question to a model has a prompt of any length."""
    for load in draft.loads:
        if load.value.prompt_words is not None and load.value.route not in _PROMPTED:
            yield draft.problem(
                "no-prompt-to-lengthen",
                load.at("prompt_words"),
                f"requests on route {load.value.route} have no prompt that could be longer",
                help_text=f"use route {' or '.join(_PROMPTED)}, or leave it out",
            )


HARM_RULES = (
    fault_exceeds_blast_radius,
    role_outside_blast_radius,
    count_exceeds_blast_radius,
    no_target,
    empty_fault,
    no_traffic,
    surge_outlasts_load,
    no_prompt_to_lengthen,
)
