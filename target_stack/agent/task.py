"""A task of an agent as one frozen value, what it may do next, and what may come of it.

A task is stored whole after every event, so what a process knows of it is never more than what its successor will find.
Between steps go references to stored results, never their texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

Phase = Literal["open", "done", "handed_over", "failed", "cancelled"]
Wait = Literal["dependency", "agent", "model", "tool", "task"]
"""What can be waited for: another task before the first step, the other agent, a model call, a tool call, the whole."""


@dataclass(frozen=True)
class Task:
    """One task. Times are Unix seconds, because a task outlives its process and maybe its machine's boot.

    `edition` is the grammar that it was begun under, `plan` are the names of its steps and `at` is the one that is due;
    `attempt` counts its tries from 1, `resumes` how often a task was found without its process. `found` maps steps to
    references of what they brought; `missing` are soft steps that were given up. `waits_for` are ids or keys of tasks,
    until `wait_until`.
    """

    id: str
    key: str
    kind: str
    agent: str
    goal: str
    trace_id: str
    priority: int
    created: float
    deadline: float
    depends_on: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    asked_by: str | None = None
    phase: Phase = "open"
    edition: str = ""
    plan: tuple[str, ...] = ()
    at: int = 0
    attempt: int = 1
    resumes: int = 0
    found: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    wait_until: float | None = None
    not_before: float = 0.0
    answer: str = ""
    reason: str = ""

    @property
    def step(self) -> str:
        """The name of the step that is due."""
        return self.plan[self.at]

    @property
    def mark(self) -> str:
        """The one name of the step that is due: of its result, of the task it asks another agent to do, of its effect.

        The same however often the step is tried and whoever tries it, so that nothing of it can be there twice.
        """
        return f"{self.id}.{self.at}"

    def to_json(self) -> dict[str, Any]:
        """Everything, for the store."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """What `to_json` gave, also after a passage through JSON text."""
        tuples = {name: tuple(record[name]) for name in ("depends_on", "given", "plan", "missing", "waits_for")}
        found = tuple((step, reference) for step, reference in record["found"])
        return cls(**{**record, **tuples, "found": found})


@dataclass(frozen=True)
class AskModel:
    """Ask for a text, with retrieval where `route` is `rag`."""

    route: Literal["chat", "rag"]
    messages: tuple[Mapping[str, str], ...]
    max_tokens: int
    limit_s: float


@dataclass(frozen=True)
class CallTool:
    """Call a tool. `key` is there where the call has a side effect."""

    tool: str
    arguments: Mapping[str, Any]
    key: str | None
    limit_s: float


@dataclass(frozen=True)
class AskAgent:
    """Have another agent do a task of this kind; `given` are references."""

    kind: str
    child: str
    given: tuple[str, ...]


@dataclass(frozen=True)
class Decide:
    """Nothing to ask anybody: the result follows from what is known."""

    result: Mapping[str, Any]


Command = AskModel | CallTool | AskAgent | Decide


@dataclass(frozen=True)
class Observed:
    """The step was performed and brought this; `reference` says where it is stored when that is not under its mark."""

    result: Mapping[str, Any]
    reference: str = ""


@dataclass(frozen=True)
class Refused:
    """The step was understood and declined; asking again would change nothing."""

    reason: str


@dataclass(frozen=True)
class Unanswered:
    """No answer. `lost` tells a call that may have had its effect from one that never began; `affordable` is whether
    the budget has another try.
    """

    reason: str
    lost: bool
    affordable: bool = True


@dataclass(frozen=True)
class WaitOver:
    """What the task waited for has ended."""


@dataclass(frozen=True)
class WaitRanOut:
    """The bound of a wait came first."""

    wait: Wait


@dataclass(frozen=True)
class Resumed:
    """A process took the task over from one that is gone."""


@dataclass(frozen=True)
class Outdated:
    """The steps of its kind have changed since it was begun."""


@dataclass(frozen=True)
class CancelAsked:
    """Whoever submitted it wants it no longer."""


Event = Observed | Refused | Unanswered | WaitOver | WaitRanOut | Resumed | Outdated | CancelAsked
