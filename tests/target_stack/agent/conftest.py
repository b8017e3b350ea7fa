"""Agents in virtual time: a store on disk, tools and a model that remember what was done, and a process that can die at
any instant between two of its acts.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from target_stack.agent.desk import Desk, Save, Taken
from target_stack.agent.plans import AGENTS, KINDS, edition, first_plan
from target_stack.agent.settings import AgentSettings, Waits
from target_stack.agent.store import TaskStore
from target_stack.agent.task import AskModel, CallTool, Decide, Event, Observed, Refused, Task, Unanswered
from target_stack.agent.worker import Worker

GOALS = {
    "order_inquiry": "Where is my order B-1001, and may I return headphones?",
    "complaint": "The kettle of order B-1003 leaks.",
    "refund": "Please pay back 30 cents of order B-1003.",
}


class Died(BaseException):
    """The process was killed here."""


@dataclass
class Ledger:
    """The tools: `effects` counts side effects by key, `calls` every call that came in."""

    effects: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    def call(self, command: CallTool) -> Event:
        self.calls[command.tool] += 1
        order = command.arguments["order"]
        if order == "B-9999":
            return Refused("not_found")
        if command.key is None:
            status = {"B-1003": "delivered"}.get(order, "shipped")
            paid = {"paid_cents": 2490, "refunded_cents": 0}
            return Observed({"order": order, "status": status, "parcel": "P-7334", **paid})
        number = len(self.effects) + 1
        done = {"ticket": f"T-{number}"} if command.tool == "open_ticket" else {"refund": f"R-{number}"}
        return Observed(self.effects.setdefault(command.key, {**command.arguments, **done}))


@dataclass
class World:
    """Everything outside of the agents' process, and their file. `kill_at` counts acts; `trouble` replaces events."""

    folder: Path
    rules: AgentSettings = field(default_factory=AgentSettings)
    now: float = 1_000_000.0
    ledger: Ledger = field(default_factory=Ledger)
    trouble: Callable[[Any, Task], Event | None] = lambda _command, _task: None
    kill_at: frozenset[int] = frozenset()
    acts: int = 0
    deaths: int = 0
    asleep: frozenset[str] = frozenset()
    store: TaskStore = None  # type: ignore[assignment]  # opened by `live`

    def __post_init__(self) -> None:
        self.live()

    def live(self) -> None:
        """A new process on the old file."""
        if self.store is not None:
            self.store.close()
        path = None if self.rules.checkpoint == "memory" else self.folder / "tasks.sqlite"
        self.store = TaskStore(path, self.rules)

    def act(self) -> None:
        """An instant at which the process may die."""
        self.acts += 1
        if self.acts in self.kill_at:
            raise Died

    def submit(self, kind: str, name: str = "t-1", **more: Any) -> Task:
        waits = tuple(more.get("depends_on", ()))
        until = {"wait_until": self.now + self.rules.waits.dependency_s} if waits else {}
        fields = {"priority": 5, "deadline": self.now + self.rules.waits.task_s, "goal": GOALS[kind], **until, **more}
        task = Task(
            id=name,
            key=f"key-{name}",
            kind=kind,
            agent=KINDS[kind].agent,
            trace_id="a" * 32,
            created=self.now,
            edition=edition(kind),
            plan=first_plan(kind),
            waits_for=waits,
            **fields,
        )
        return self.store.submit(task)

    def run(self, most_s: float = 60.0) -> None:
        """Let the agents work, dying and living again, until no task is open."""
        end = self.now + most_s
        while self.store.newest("open", 1):
            try:
                asyncio.run(self._work(end))
            except Died:
                self.deaths += 1
                self.live()

    def step(self) -> None:
        """One task goes on until it waits, or time passes."""
        asyncio.run(self._turn())

    async def _work(self, end: float) -> None:
        while self.store.newest("open", 1):
            assert self.now < end, f"still open: {self.store.newest('open', 9)}"
            await self._turn()

    async def _turn(self) -> None:
        due = []
        for agent in (name for name in AGENTS if name not in self.asleep):
            desk = _Desk(self)
            taken = await desk.take(agent)
            if isinstance(taken, Taken):
                await Worker(agent, desk, _Hands(self), self.rules, lambda: self.now, random.Random(1)).work(taken)
                return
            due += [taken] if taken is not None else []
        self.now = max(self.now + 0.001, min(due, default=self.now + 0.1))

    def task(self, name: str = "t-1") -> Task:
        found = self.store.find(name)
        assert found is not None
        return found

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        return [e for e in self.store.account.events(0)["events"] if name in (None, e["name"])]


@dataclass
class _Desk(Desk):
    world: World

    async def take(self, agent: str) -> Taken | float | None:
        self.world.act()
        taken = self.world.store.take(agent, self.world.now)
        self.world.act()
        return taken

    async def save(self, save: Save) -> bool:
        self.world.act()
        unwanted = self.world.store.save(save, self.world.now, self.world.now)
        self.world.act()
        return unwanted

    async def renew(self, ids):
        self.world.store.renew(ids, self.world.now)

    async def rest(self, limit_s):
        self.world.now += limit_s


@dataclass
class _Hands:
    world: World

    async def perform(self, command, task, limit_s):
        self.world.act()
        event = self.world.trouble(command, task)
        if event is None or (isinstance(event, Unanswered) and event.lost):
            done = self._done(command, task)
            event = event or done
        self.world.act()
        return event

    def _done(self, command, task):
        if isinstance(command, Decide):
            return Observed(command.result)
        if isinstance(command, CallTool):
            return self.world.ledger.call(command)
        assert isinstance(command, AskModel)
        if task.step == "plan":
            return Observed({"text": KINDS[task.kind].description})
        return Observed({"text": "Headphones can be returned within 45 days."})


@pytest.fixture
def world(tmp_path):
    """`world(**settings)` in a folder of its own."""
    worlds = []

    def make(**settings: Any) -> World:
        folder = tmp_path / str(len(worlds))
        folder.mkdir()
        worlds.append(World(folder, AgentSettings(**settings)))
        return worlds[-1]

    yield make
    for one in worlds:
        one.store.close()


@pytest.fixture
def waits():
    """The class, for tests that change one of them."""
    return Waits


@pytest.fixture
def hands():
    """`hands(world)` performs against its ledger; `refuses` is a tool that says no, `sleeps` agents that never act."""

    def make(place: World, *, refuses: str = "", sleeps: tuple[str, ...] = ()) -> Any:
        class Hands(_Hands):
            async def perform(self, command, task, limit_s):
                if task.agent in sleeps:
                    await asyncio.sleep(3600)
                if isinstance(command, CallTool) and command.tool == refuses:
                    return Refused("permission_denied")
                return self._done(command, task)

        return Hands(place)

    return make
