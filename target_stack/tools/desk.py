"""The one way to call a tool: who are you, may you, is it well formed, was it done before, do it, write it down.

    identify ─► in time? ─► tool ─► arguments ─► permission ─► key ─┬─► done before: the first result again
                                                                    └─► handler ─► ledger ─► audit      one transaction

Whatever instant the process dies at, either all of a call is stored or nothing of it. The same key of the same agent
gives the first result again, so a caller that lost a reply may ask again as often as it likes. A refusal stores nothing
but its audit line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from target_stack.tools.audit import AuditLine, AuditLog
from target_stack.tools.catalog import Arguments, Tool, check_arguments, find_tool
from target_stack.tools.permissions import Agent, Register
from target_stack.tools.refusal import ToolError
from target_stack.tools.store import Effect, ToolStore
from target_stack.tools.wire import KEY

NOBODY = "unknown"

Enforcement = Literal["enforce", "report"]
"""`report` only writes down what the rules say, and lets everybody through: for the first days of a new rule."""

_KEY_FORM = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True)
class ToolCall:
    """A call as it came. `deadline` is the monotonic time after which nobody waits; `wall` and `mono` are now."""

    tool: str
    arguments: Mapping[str, Any]
    token: str
    key: str | None
    trace_id: str | None
    deadline: float | None
    wall: float
    mono: float


@dataclass(frozen=True)
class Done:
    """What the caller is told. `replayed` when an earlier call with this key had done it."""

    result: Mapping[str, Any]
    replayed: bool


class Desk:
    """Takes calls, one at a time."""

    def __init__(self, store: ToolStore, register: Register, log: AuditLog, enforcement: Enforcement) -> None:
        self._store = store
        self._register = register
        self._log = log
        self._enforcement = enforcement

    def use(self, call: ToolCall) -> Done:
        """Do it, or tell what was done before. Raises ToolError, and then nothing was done; sqlite3.Error when the
        store failed, and then too.
        """
        agent = self._register.identify(call.token)
        judged = _Judged(agent.name if agent else NOBODY)
        try:
            with self._store.transaction():
                done = self._do(call, agent, judged)
                self._log.note(judged.line(call, "replayed" if done.replayed else "ok", done.result))
        except ToolError as refused:
            with self._store.transaction():
                self._log.note(judged.line(call, refused.code, refused.to_json()))
            raise
        return done

    def _do(self, call: ToolCall, agent: Agent | None, judged: _Judged) -> Done:
        if call.deadline is not None and call.mono >= call.deadline:
            raise ToolError("deadline_exceeded", "the deadline had passed before the call began")
        if agent is None:
            self._refuse(ToolError("unauthenticated", "the bearer token belongs to no agent"))
        tool = find_tool(call.tool)
        arguments = check_arguments(tool, call.arguments)
        against = agent.refusal(tool.name, call.arguments, self._store.owner_of) if agent else "nobody is known"
        if against is None:
            judged.permitted = True
        else:
            self._refuse(ToolError("permission_denied", against))
        if not tool.acts:
            return Done(tool.handler(arguments, self._store).model_dump(), replayed=False)
        return self._act(tool, arguments, judged.agent, call)

    def _refuse(self, error: ToolError) -> None:
        if self._enforcement == "enforce":
            raise error

    def _act(self, tool: Tool, arguments: Arguments, agent: str, call: ToolCall) -> Done:
        key, asked = _checked_key(call.key, tool), arguments.model_dump()
        before = self._store.effect(agent, key)
        if before is not None:
            if (before.tool, before.arguments) != (tool.name, asked):
                raise ToolError("conflict", "this key was used for another call", KEY)
            return Done(before.result, replayed=True)
        result = tool.handler(arguments, self._store).model_dump()
        self._store.add_effect(Effect(agent, key, tool.name, asked, result, call.trace_id, call.wall, call.mono))
        return Done(result, replayed=False)

    def flush(self) -> None:
        """Write audit lines that wait. Raises sqlite3.Error."""
        with self._store.transaction():
            self._log.flush()


@dataclass
class _Judged:
    """What is known so far about the caller, for the audit line however the call ends."""

    agent: str
    permitted: bool = False

    def line(self, call: ToolCall, outcome: str, result: Mapping[str, Any]) -> AuditLine:
        return AuditLine(
            wall=call.wall,
            mono=call.mono,
            agent=self.agent,
            tool=call.tool,
            arguments=call.arguments,
            key=call.key,
            trace_id=call.trace_id,
            permitted=self.permitted,
            outcome=outcome,
            result=result,
        )


def _checked_key(key: str | None, tool: Tool) -> str:
    if key is None:
        raise ToolError("invalid_argument", f"{tool.name} acts, so a call needs an {KEY}", KEY)
    if not _KEY_FORM.fullmatch(key):
        raise ToolError("invalid_argument", f"{KEY} must be 1 to 128 visible ASCII characters", KEY)
    return key
