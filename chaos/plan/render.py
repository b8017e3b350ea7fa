"""The plan as people read it: what would happen to whom and when."""

from __future__ import annotations

from chaos.inventory import Target
from chaos.plan.plan import Plan, PlannedFault
from chaos.settings import settings_of
from chaos.spec.model import Load


def render(plan: Plan) -> str:
    """Plain text, the same bytes for the same plan."""
    experiment = plan.experiment
    lines = [
        f"{experiment.title}",
        f"  experiment   {experiment.name}",
        f"  stack        {plan.stack} (profile {plan.profile})",
        f"  seed         {plan.seed}",
        f"  fingerprint  {plan.fingerprint}",
        f"  lasts        {plan.load_end:g}s of load, then the drain",
        "",
        "load",
        *(f"  {load_line(load)}" for load in experiment.loads),
        "",
        "faults",
        *(line for fault in plan.faults for line in _fault(fault)),
        "",
        "timeline",
        *(f"  {step.at:8.2f}s  {step.action.replace('_', ' '):12}  {step.subject}" for step in plan.steps),
        "",
        "hypotheses",
        *(f"  {h.name}" + (f" ({h.window})" if h.window else "") for h in experiment.hypotheses),
    ]
    return "\n".join(lines) + "\n"


def load_line(load: Load) -> str:
    """One load in one line."""
    client = f"{load.client.persona} clients"
    if load.client.timeout is not None:
        client += f", timeout {load.client.timeout}"
    if load.client.retries is not None:
        client += f", {load.client.retries} retries"
    rate = f"{load.rate} {load.arrivals}"
    if load.surge is not None:
        rate += f", {load.surge.times:g} times as much for {load.surge.for_}"
    kind = " of batch work" if load.priority == "batch" else ""
    length = "" if load.prompt_words is None else f", prompts of {load.prompt_words} words"
    return f"{load.name}: {rate}{kind} on {load.route} ({load.prompts}{length}), {client}"


def _fault(fault: PlannedFault) -> list[str]:
    values = {s.key: getattr(fault.fault, s.field) for s in settings_of(type(fault.fault))}
    settings = ", ".join(f"{key} {value}" for key, value in values.items())
    return [
        f"  {fault.name}: {fault.fault.kind}" + (f" ({settings})" if settings else ""),
        f"    harms      {_who(fault.targets)}",
        f"    from       {fault.inject_at:g}s to {fault.revert_at:g}s, lease {fault.lease_s:g}s",
        f"    seen by    {fault.fault.observer}",
        f"    fidelity   {fault.fault.fidelity}",
    ]


def _who(targets: tuple[Target, ...]) -> str:
    if not targets:
        return "nobody"
    return ", ".join(f"{t.name} ({t.role}{f' on {t.node}' if t.node else ''})" for t in targets)
