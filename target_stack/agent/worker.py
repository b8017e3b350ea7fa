"""The thin shell of one agent: take a task, perform what it says, store what came of it, until it waits or ends."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from target_stack.agent import plans
from target_stack.agent.desk import Desk, LeaseLost, Note, Save, Taken
from target_stack.agent.machine import Moment, advance, key_of, pending
from target_stack.agent.settings import AgentSettings
from target_stack.agent.task import (
    AskAgent,
    CallTool,
    CancelAsked,
    Command,
    Event,
    Observed,
    Outdated,
    Refused,
    Resumed,
    Task,
    Unanswered,
    WaitOver,
    WaitRanOut,
)

Clock = Callable[[], float]
"""Unix time in seconds: deadlines outlive the process."""
_REST_S, _MOMENT_S = 0.5, 0.001


class Performer(Protocol):
    """Whoever carries a command out."""

    async def perform(self, command: Command, task: Task, limit_s: float) -> Event:
        """What came of it, after `limit_s` at the latest. Raises nothing but CancelledError."""
        ...


@dataclass(frozen=True)
class Worker:
    """One agent at work on up to `slots` tasks at once."""

    agent: str
    desk: Desk
    performer: Performer
    rules: AgentSettings
    clock: Clock
    rng: random.Random

    async def run(self) -> None:
        """Work until cancelled."""
        hands: set[asyncio.Task[None]] = set()
        held: dict[str, Task] = {}
        heartbeat = asyncio.create_task(self._keep(held))
        try:
            while True:
                await self._fill(hands, held)
        finally:
            for job in (heartbeat, *hands):
                job.cancel()
            await asyncio.wait({heartbeat, *hands})

    async def _fill(self, hands: set[asyncio.Task[None]], held: dict[str, Task]) -> None:
        """Take one task more, or rest until there may be one."""
        if len(hands) >= self.rules.queue.slots:
            await asyncio.wait(hands, return_when=asyncio.FIRST_COMPLETED)
            return
        taken = await self.desk.take(self.agent)
        if isinstance(taken, Taken):
            job = asyncio.create_task(self._hold(taken, held))
            hands.add(job)
            job.add_done_callback(lambda done: self._let_go(done, hands))
            return
        await self.desk.rest(_REST_S if taken is None else min(_REST_S, max(_MOMENT_S, taken - self.clock())))

    def _let_go(self, job: asyncio.Task[None], hands: set[asyncio.Task[None]]) -> None:
        hands.discard(job)
        if not job.cancelled() and (problem := job.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler({"message": f"{self.agent} broke", "exception": problem})

    async def _hold(self, taken: Taken, held: dict[str, Task]) -> None:
        held[taken.task.id] = taken.task
        try:
            with contextlib.suppress(LeaseLost):
                await self.work(taken)
        finally:
            del held[taken.task.id]

    async def _keep(self, held: Mapping[str, Task]) -> None:
        """The heartbeat: what is in hand stays ours."""
        while True:
            await asyncio.sleep(self.rules.waits.lease_s / 3)
            if held:
                await self.desk.renew(list(held))

    async def work(self, taken: Taken) -> None:
        """Go on with a task until it waits, pauses or ends. Raises LeaseLost."""
        task, known = taken.task, dict(taken.known)
        event = Resumed() if taken.resumed else self._woken(taken)
        if task.edition != plans.edition(task.kind):
            event = Outdated()
        while True:
            event = event or await self._performed(task, known)
            if isinstance(event, Observed):
                known[task.step] = event.result
            moment = self._moment()
            after = advance(task, event, known, moment)
            unwanted = await self.desk.save(self._save(task, event, after, known, moment))
            if after.phase != "open":
                return
            if unwanted:
                event, task = CancelAsked(), after
                continue
            if after.waits_for or after.not_before > self.clock():
                return
            event, task = None, after

    def _woken(self, taken: Taken) -> Event | None:
        """Why a task that waited goes on; None when it did not wait."""
        task = taken.task
        if not task.waits_for:
            return None
        ends = [taken.ends.get(name) for name in task.waits_for]
        if any(end is None for end in ends):
            return WaitRanOut("dependency" if task.at == 0 else "agent")
        broken = next((end for end in ends if end and end["phase"] != "done"), None)
        if broken:
            return Refused(f"what it waited for was {broken['phase']}")
        if task.at == 0:
            return WaitOver()
        last = ends[-1] or {}
        return Observed(last["result"], last["reference"])

    async def _performed(self, task: Task, known: Mapping[str, Any]) -> Event:
        left_s = task.deadline - self.clock()
        if left_s <= 0:
            return WaitRanOut("task")
        return await self.performer.perform(pending(task, known, self._moment()), task, left_s)

    def _moment(self) -> Moment:
        return Moment(self.clock(), self.rules, self.rng.random())

    def _save(self, task: Task, event: Event, after: Task, known: Mapping[str, Any], moment: Moment) -> Save:
        """All that one event changes: what is stored, told, and asked of another agent."""
        result = (task.mark, event.result) if isinstance(event, Observed) and not event.reference else None
        asks = after.phase == "open" and bool(after.waits_for) and after.waits_for != task.waits_for
        child = self._child(after, known, moment) if asks else None
        return Save(after, note_of(task, event, known, moment), result, child, task.waits_for)

    def _child(self, task: Task, known: Mapping[str, Any], moment: Moment) -> Task:
        asked = pending(task, known, moment)
        if not isinstance(asked, AskAgent):
            raise TypeError(f"{task.step} asks no agent")
        return Task(
            id=asked.child,
            key=asked.child,
            kind=asked.kind,
            agent=plans.KINDS[asked.kind].agent,
            goal="",
            trace_id=task.trace_id,
            priority=task.priority,
            created=moment.now,
            deadline=min(task.deadline, moment.now + moment.rules.waits.task_s),
            given=asked.given,
            asked_by=task.id,
            edition=plans.edition(asked.kind),
            plan=plans.first_plan(asked.kind),
        )


_OUTCOMES: Mapping[type, str] = {
    Observed: "observed",
    Refused: "refused",
    WaitOver: "wait_over",
    WaitRanOut: "wait_ran_out",
    Resumed: "resumed",
    Outdated: "outdated",
    CancelAsked: "cancelled",
}


def note_of(task: Task, event: Event, known: Mapping[str, Any], moment: Moment) -> Note:
    """What is written down of an event; a call that ran into its own limit counts as a wait that ran out."""
    performed = isinstance(event, Observed | Refused | Unanswered) and not task.waits_for
    command = pending(task, known, moment) if performed else None
    call = command if isinstance(command, CallTool) else None
    reason = event.reason if isinstance(event, Refused | Unanswered) else ""
    wait = event.wait if isinstance(event, WaitRanOut) else ""
    if reason == "timeout":
        wait = "tool" if call else "model"
    return Note(
        step=task.step,
        outcome=("lost" if event.lost else "unanswered") if isinstance(event, Unanswered) else _OUTCOMES[type(event)],
        attempt=task.attempt,
        key=key_of(task, moment.rules) if call and call.key else "",
        reason=reason,
        tool=call.tool if call else "",
        wait=wait,
    )
