"""What the agents can do: kinds of tasks, the steps each may take, and what is told to whom.

The model chooses a plan and finds the words; it cannot invent a step. A kind declares its steps in their order, some of
them optional, and a plan is legal when it leaves out optional steps only. A text that holds no legal plan (the model is
down, canned, or talks nonsense) is replaced by the declared one, so no side effect ever rests on a model's mood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from target_stack.agent.task import Task

Known = Mapping[str, Mapping[str, Any]]
"""Results of a task's own steps by step, and what it was given as `given`."""

ORDER = re.compile(r"\bB-\d{4}\b")
SUBJECT_CHARACTERS = 200
_CENTS = re.compile(r"\b(\d{1,6}) cents?\b")
_STEP_WORD = re.compile(r"[a-z]+(?:_[a-z]+)*")
_REFUNDABLE = ("delivered", "returned")


@dataclass(frozen=True)
class Step:
    """One kind of step. A `soft` one may be given up, the answer then says less; a refusal of another ends the task the
    way `on_refusal` says, and no answer at all hands it over to a person. `tries` is for what others retry for us.
    """

    does: Literal["model", "tool", "agent", "rule"]
    soft: bool = False
    on_refusal: Literal["failed", "handed_over"] = "handed_over"
    tries: int | None = None


STEPS: Mapping[str, Step] = {
    "plan": Step("model", soft=True, tries=1),
    "look_up": Step("tool", on_refusal="failed"),
    "policy": Step("model", soft=True, tries=1),
    "open_ticket": Step("tool"),
    "claim": Step("rule"),
    "ask_approver": Step("agent"),
    "decide": Step("rule"),
    "pay": Step("tool"),
    "answer": Step("model", soft=True, tries=1),
}


@dataclass(frozen=True)
class Kind:
    """One kind of task: who does it, its steps in order, which of them may be left out, how its plan is described to
    the model. Without a description the plan is always the declared one, and no client may submit it.
    """

    agent: str
    steps: tuple[str, ...]
    optional: tuple[str, ...] = ()
    description: str = ""


KINDS: Mapping[str, Kind] = {
    "order_inquiry": Kind(
        "support", ("look_up", "policy", "answer"), ("policy",), "An order_inquiry takes look_up, policy, answer."
    ),
    "complaint": Kind(
        "support", ("look_up", "open_ticket", "answer"), (), "A complaint takes look_up, open_ticket, answer."
    ),
    "refund": Kind(
        "support",
        ("look_up", "claim", "ask_approver", "answer"),
        (),
        "A refund takes look_up, claim, ask_approver, answer.",
    ),
    "payout": Kind("approver", ("look_up", "decide", "pay")),
}
AGENTS = tuple(dict.fromkeys(kind.agent for kind in KINDS.values()))
SUBMITTED = tuple(name for name, kind in KINDS.items() if kind.description)


def edition(kind: str) -> str:
    """Changes with the steps of a kind: a task that was begun under other steps must not go on under these."""
    return " ".join(KINDS[kind].steps) if kind in KINDS else ""


def first_plan(kind: str) -> tuple[str, ...]:
    """What a new task begins with."""
    return ("plan",) if KINDS[kind].description else KINDS[kind].steps


def read_plan(kind: str, text: str) -> tuple[str, ...] | None:
    """The plan that a text names, each step once and in its order; None when it is not a legal one of this kind."""
    declared = KINDS[kind]
    named = tuple(dict.fromkeys(word for word in _STEP_WORD.findall(text) if word in STEPS))
    in_order = tuple(step for step in declared.steps if step in named)
    required = tuple(step for step in declared.steps if step not in declared.optional)
    return named if named == in_order and set(required) <= set(named) else None


def after(kind: str, plan: tuple[str, ...], step: str, result: Mapping[str, Any]) -> tuple[str, ...]:
    """The plan as it stands once a step has brought its result."""
    if step == "plan":
        return (*plan, *(read_plan(kind, str(result.get("text", ""))) or KINDS[kind].steps))
    if step == "decide" and not result["approved"]:
        return tuple(later for later in plan if later != "pay")
    return plan


def without(kind: str, plan: tuple[str, ...], step: str) -> tuple[str, ...]:
    """The plan after a soft step was given up."""
    return (*plan, *KINDS[kind].steps) if step == "plan" else plan


def order_of(task: Task, known: Known) -> str:
    """The order that it is about: named in the goal, or in the result that the task was given."""
    named = ORDER.search(task.goal)
    return named[0] if named else str(known["given"]["order"])


def subject_of(task: Task) -> str:
    """One line for a ticket."""
    return " ".join(task.goal.split())[:SUBJECT_CHARACTERS]


def claim(task: Task, known: Known) -> dict[str, Any]:
    """What the customer wants back: the amount that the goal names, or all that was paid and not yet given back."""
    found, named = known["look_up"], _CENTS.search(task.goal)
    amount_cents = int(named[1]) if named else found["paid_cents"] - found["refunded_cents"]
    return {"order": found["order"], "amount_cents": amount_cents}


def decide(known: Known) -> dict[str, Any]:
    """The approver's rule, by its own look at the order: money goes back for what has arrived, once."""
    found, amount_cents = known["look_up"], known["given"]["amount_cents"]
    if found["status"] not in _REFUNDABLE:
        return {"approved": False, "why": f"the order is {found['status']}"}
    if not 0 < amount_cents <= found["paid_cents"] - found["refunded_cents"]:
        return {"approved": False, "why": "that was not paid, or was given back already"}
    return {"approved": True, "amount_cents": amount_cents}


def plan_messages(task: Task) -> tuple[Mapping[str, str], ...]:
    """Ask the model for a plan: the descriptions are its context, in the form that the engines know."""
    context = "\n".join(f"[{name}] {KINDS[name].description}" for name in SUBMITTED)
    question = f"Context:\n{context}\n\nQuestion: Which steps takes a {task.kind}?"
    return ({"role": "system", "content": "Name the steps in their order."}, {"role": "user", "content": question})


def policy_messages(task: Task) -> tuple[Mapping[str, str], ...]:
    """Ask for the policy that the goal is about; the front door looks up the documents."""
    return ({"role": "user", "content": ORDER.sub("", task.goal).strip() or task.kind},)


def answer_messages(task: Task, known: Known) -> tuple[Mapping[str, str], ...]:
    """Ask for the wording, with the facts as context."""
    facts = "\n".join(f"[fact-{number}] {fact}" for number, fact in enumerate(facts_of(task, known), 1))
    question = f"Context:\n{facts}\n\nQuestion: {subject_of(task)}"
    return ({"role": "system", "content": "Answer from the facts."}, {"role": "user", "content": question})


def _order_fact(known: Known) -> str:
    found = known["look_up"]
    return f"Order {found['order']} is {found['status']}, parcel {found['parcel']}."


def _policy_fact(known: Known) -> str:
    return str(known["policy"]["text"])


def _ticket_fact(known: Known) -> str:
    return f"Your ticket is {known['open_ticket']['ticket']}."


def _refund_fact(known: Known) -> str:
    came = known["ask_approver"]
    if "refund" in came:
        return f"Your refund is {came['refund']}: {came['amount_cents']} cent{'s' * (came['amount_cents'] != 1)}."
    return f"The refund is declined: {came['why']}."


_FACTS: Mapping[str, Callable[[Known], str]] = {
    "look_up": _order_fact,
    "policy": _policy_fact,
    "open_ticket": _ticket_fact,
    "ask_approver": _refund_fact,
}


def facts_of(task: Task, known: Known) -> tuple[str, ...]:
    """One sentence for each step that brought something, in the order of the plan."""
    return tuple(_FACTS[step](known) for step in task.plan if step in _FACTS and step in known)


def compose(task: Task, known: Known) -> str:
    """The answer: the model's words where there are any, and every fact that they leave out."""
    words = str(known.get("answer", {}).get("text", "")).strip()
    left_out = [fact for fact in facts_of(task, known) if fact not in words]
    return " ".join([words, *left_out] if words else left_out)
