"""Rules on names: each is given once, and whatever refers to one refers to something that exists."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from chaos.inventory import ROLES
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.draft import Draft, Placed
from chaos.spec.layout import owns_bound
from chaos.spec.model import Guard, Hypothesis
from chaos.spec.wording import shown, suggestion

WINDOWS = ("gate", "baseline", "fault", "recovery", "settled")
"""Windows that every run has, beside one for each fault."""

CONTROL_KIND = "noop"
"""The fault that harms nobody; an experiment of nothing else is a control."""


def duplicate_name(draft: Draft) -> Iterator[Diagnostic]:
    """Loads, faults and hypotheses are told apart by name."""
    for names in (draft.load_names, draft.fault_names, draft.hypothesis_names):
        first: dict[str, str] = {}
        for path, name in names.by_path.items():
            if first.setdefault(name, path) != path:
                related = {first[name]: "first given here"}
                yield draft.problem(
                    "duplicate-name", path, f"the name {shown(name, 40)} is given twice", related=related
                )


def reserved_name(draft: Draft) -> Iterator[Diagnostic]:
    """A fault names a window, which must not be one that every run has."""
    for path, name in draft.fault_names.by_path.items():
        if name in WINDOWS:
            help_text = "name the fault after what it does"
            yield draft.problem("reserved-name", path, f"`{name}` is a window of every run", help_text=help_text)


def unknown_window(draft: Draft) -> Iterator[Diagnostic]:
    """A hypothesis looks at a window of every run or at that of a fault."""
    known = [*WINDOWS, *draft.fault_names.known]
    for hypothesis in draft.hypotheses if draft.fault_names.complete else ():
        for key in ("window", "against"):
            window = getattr(hypothesis.value, key)
            if window is not None and window not in known:
                headline, help_text = f"unknown window {shown(window)}", suggestion(window, known)
                yield draft.problem("unknown-window", hypothesis.at(key), headline, help_text=help_text)


def unknown_load(draft: Draft) -> Iterator[Diagnostic]:
    """A measure looks at one of the loads of this file."""
    for claim in _claims(draft) if draft.load_names.complete else ():
        beside = getattr(claim.value, "against_load", None)
        for key, load in (("load", getattr(claim.value.measure, "load", None)), ("against_load", beside)):
            if isinstance(load, str) and load not in draft.load_names.known:
                help_text = suggestion(load, draft.load_names.known)
                yield draft.problem("unknown-load", claim.at(key), f"unknown load {shown(load)}", help_text=help_text)


def unknown_moment(draft: Draft) -> Iterator[Diagnostic]:
    """`of` of an event is the start or end of a fault of this file."""
    for hypothesis in draft.hypotheses if draft.fault_names.complete else ():
        moment = getattr(hypothesis.value.measure, "of", None)
        if not isinstance(moment, str) or not (owns_bound(type(hypothesis.value.measure)) or "." in moment):
            continue
        if not _is_moment(moment, draft.fault_names.known):
            known = [f"{fault}.{edge}" for fault in sorted(draft.fault_names.known) for edge in ("start", "end")]
            headline = f"{shown(moment)} is no start or end of a fault"
            yield draft.problem("unknown-moment", hypothesis.at("of"), headline, help_text=suggestion(moment, known))


def unknown_role(draft: Draft) -> Iterator[Diagnostic]:
    """Roles are a closed list: a mistyped one would select nobody."""
    written = {
        f"blast_radius.roles.{i}": role for i, role in enumerate(draft.blast_radius.roles if draft.blast_radius else ())
    }
    for fault in draft.faults:
        if fault.value.target and fault.value.target.role is not None:
            written[fault.at("target.role")] = fault.value.target.role
    for path, role in written.items():
        if role not in ROLES:
            yield draft.problem("unknown-role", path, f"unknown role {shown(role)}", help_text=suggestion(role, ROLES))


def unknown_prompts(draft: Draft) -> Iterator[Diagnostic]:
    """A load asks questions from a prompt set that exists."""
    known = draft.catalog.prompts
    for load in draft.loads if known is not None else ():
        if load.value.prompts not in (known or ()):
            headline = f"no prompt set {shown(load.value.prompts)}"
            yield draft.problem(
                "unknown-prompts", load.at("prompts"), headline, help_text=_suggested(load.value.prompts, known)
            )


def runbook_not_found(draft: Draft) -> Iterator[Diagnostic]:
    """The runbook that a finding would be written into exists."""
    runbook, known = draft.top.get("runbook"), draft.catalog.runbooks
    if runbook and known is not None and runbook not in known:
        yield draft.problem(
            "runbook-not-found", "runbook", f"no runbook {shown(runbook)}", help_text=_suggested(runbook, known)
        )


def missing_runbook(draft: Draft) -> Iterator[Diagnostic]:
    """Whoever breaks something says which page an SRE opens when it breaks by itself."""
    harmful = next((fault for fault in draft.faults if fault.value.kind != CONTROL_KIND), None)
    if harmful and draft.top.get("runbook") == "":
        headline = "no `runbook` is named, though something is broken"
        help_text = "add `runbook:` with the name of a page in runbooks/"
        yield draft.problem(
            "missing-runbook", harmful.at("kind"), headline, help_text=help_text, label="breaks something"
        )


def _claims(draft: Draft) -> tuple[Placed[Guard] | Placed[Hypothesis], ...]:
    return (*draft.guards, *draft.hypotheses)


def _is_moment(text: str, faults: Collection[str]) -> bool:
    fault, _, edge = text.rpartition(".")
    return fault in faults and edge in ("start", "end")


def _suggested(name: str, known: Collection[str] | None) -> str | None:
    return suggestion(name, sorted(known or ()))


NAME_RULES = (
    duplicate_name,
    reserved_name,
    unknown_window,
    unknown_load,
    unknown_moment,
    unknown_role,
    unknown_prompts,
    runbook_not_found,
    missing_runbook,
)
