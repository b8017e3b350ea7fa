"""The loop of an agent as a pure state machine: plan, call, observe.

    pending(task, known)         ─► the command that is due, the same for every process that reads the same task
    advance(task, event, known)  ─► the task after an event

The shell stores what `advance` gives before it performs what `pending` says. So the stored task is at once the
observation of the last step and the intent of the next, and a process that finds it goes on where the last one was cut
off, with the same key. Every wait ends in one of the declared paths: once more, without this step, a person, or failed
with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from target_stack.agent import plans
from target_stack.agent.plans import STEPS, Known
from target_stack.agent.settings import AgentSettings
from target_stack.agent.task import (
    AskAgent,
    AskModel,
    CallTool,
    CancelAsked,
    Command,
    Decide,
    Event,
    Observed,
    Outdated,
    Phase,
    Refused,
    Resumed,
    Task,
    Unanswered,
    WaitOver,
    WaitRanOut,
)

_PLAN_TOKENS, _POLICY_TOKENS, _ANSWER_TOKENS = 32, 48, 48
HANDED_OVER = "A person from our support team will take care of this and get in touch with you."


@dataclass(frozen=True)
class Moment:
    """What a decision depends on besides the task: Unix time, the rules, and a throw of the dice from 0 to 1."""

    now: float
    rules: AgentSettings
    dice: float = 1.0


def key_of(task: Task, rules: AgentSettings) -> str:
    """The idempotency key of the step that is due."""
    if rules.key_policy == "per_step":
        return task.mark
    return f"{task.mark}.{task.attempt}.{task.resumes}"


def pending(task: Task, known: Known, moment: Moment) -> Command:
    """What the step that is due asks for."""
    step, waits = task.step, moment.rules.waits
    if step == "plan":
        return AskModel("chat", plans.plan_messages(task), _PLAN_TOKENS, waits.model_s)
    if step == "policy":
        return AskModel("rag", plans.policy_messages(task), _POLICY_TOKENS, waits.model_s)
    if step == "answer":
        return AskModel("chat", plans.answer_messages(task, known), _ANSWER_TOKENS, waits.model_s)
    if step == "ask_approver":
        return AskAgent("payout", task.mark, (dict(task.found)["claim"],))
    if step in ("claim", "decide"):
        return Decide(plans.claim(task, known) if step == "claim" else plans.decide(known))
    return _tool_call(task, known, moment)


def _tool_call(task: Task, known: Known, moment: Moment) -> CallTool:
    order, limit_s = plans.order_of(task, known), moment.rules.waits.tool_s
    key = key_of(task, moment.rules)
    if task.step == "open_ticket":
        return CallTool("open_ticket", {"order": order, "subject": plans.subject_of(task)}, key, limit_s)
    if task.step == "pay":
        amount = {"amount_cents": known["decide"]["amount_cents"]}
        return CallTool("refund_order", {"order": order, **amount}, key, limit_s)
    return CallTool("order_status", {"order": order}, None, limit_s)


def advance(task: Task, event: Event, known: Known, moment: Moment) -> Task:
    """The task after an event. An ended task stays as it is."""
    if task.phase != "open":
        return task
    match event:
        case Observed():
            return _observed(task, event, known, moment)
        case Refused(reason=reason):
            return _refused(task, reason, known, moment)
        case Unanswered(affordable=True) if task.attempt < _most_tries(task, moment):
            return _again(task, moment)
        case Unanswered(reason=reason):
            return _given_up(task, reason, known, moment)
        case WaitRanOut(wait=wait):
            return _ran_out(task, wait, known, moment)
        case WaitOver():
            return replace(task, waits_for=(), wait_until=None)
        case Resumed():
            return replace(task, resumes=task.resumes + 1)
        case Outdated():
            return ended(task, "handed_over", "its kind has changed since it was begun")
        case CancelAsked():
            return ended(task, "cancelled", "cancelled")


def _observed(task: Task, event: Observed, known: Known, moment: Moment) -> Task:
    found = (*task.found, (task.step, event.reference or task.mark))
    plan = plans.after(task.kind, task.plan, task.step, event.result)
    return _enter(replace(task, found=found, plan=plan), {**known, task.step: event.result}, moment)


def _enter(task: Task, known: Known, moment: Moment) -> Task:
    """Go on to the next step, or to the end."""
    fresh = replace(task, at=task.at + 1, attempt=1, not_before=0.0, waits_for=(), wait_until=None)
    if fresh.at == len(fresh.plan):
        return replace(fresh, phase="done", answer=plans.compose(fresh, known))
    if STEPS[fresh.step].does == "agent":
        return replace(fresh, waits_for=(fresh.mark,), wait_until=moment.now + moment.rules.waits.agent_s)
    return fresh


def _most_tries(task: Task, moment: Moment) -> int:
    return STEPS[task.step].tries or moment.rules.tries.most


def _again(task: Task, moment: Moment) -> Task:
    """The next try, after a pause with full jitter."""
    tries = moment.rules.tries
    pause_s = moment.dice * min(tries.cap_s, tries.base_s * 2 ** (task.attempt - 1))
    return replace(task, attempt=task.attempt + 1, not_before=moment.now + pause_s)


def _refused(task: Task, reason: str, known: Known, moment: Moment) -> Task:
    if task.waits_for and task.at == 0:
        return ended(task, "handed_over", reason)
    if STEPS[task.step].soft:
        return _given_up(task, reason, known, moment)
    return ended(task, STEPS[task.step].on_refusal, f"{task.step}: {reason}")


def _ran_out(task: Task, wait: str, known: Known, moment: Moment) -> Task:
    if wait in ("task", "dependency"):
        return ended(task, "handed_over", f"{wait}: wait_ran_out")
    return _given_up(task, "wait_ran_out", known, moment)


def _given_up(task: Task, reason: str, known: Known, moment: Moment) -> Task:
    if not STEPS[task.step].soft:
        return ended(task, "handed_over", f"{task.step}: {reason}")
    plan = plans.without(task.kind, task.plan, task.step)
    return _enter(replace(task, plan=plan, missing=(*task.missing, task.step)), known, moment)


def ended(task: Task, phase: Phase, reason: str) -> Task:
    """A task that ends without having done what was asked, and what its owner is told."""
    answers = {"handed_over": HANDED_OVER, "failed": f"This could not be done: {reason}."}
    return replace(task, phase=phase, reason=reason, answer=answers.get(phase, ""), waits_for=(), wait_until=None)
