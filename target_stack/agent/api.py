"""What clients may ask of the agents, over HTTP.

    POST   /v1/agent/tasks        {"kind", "goal", "priority"?, "depends_on"?, "wait_s"?}; idempotency-key makes it one
    GET    /v1/agent/tasks/{id}   by id or key, with every step; `?wait_s=` waits for the end
    GET    /v1/agent/tasks        the newest; `?state=` done, handed_over, failed, cancelled or open
    DELETE /v1/agent/tasks/{id}   have it end without its work
    GET    /ping, /storage, /metrics, /debug/events?after=N

200 is a task that has ended, 202 one that has not yet. A client that goes away stops nothing: an accepted task is
finished.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from target_stack.agent.bell import Bell
from target_stack.agent.plans import KINDS, ORDER, SUBMITTED, edition, first_plan
from target_stack.agent.settings import AgentSettings
from target_stack.agent.store import Circle, Conflict, Full, TaskStore
from target_stack.agent.task import Task
from target_stack.gateway.instruments import series
from target_stack.gateway.metrics import CONTENT_TYPE
from target_stack.gateway.policies.deadline import HEADER
from target_stack.gateway.trace import trace_of
from target_stack.storage_check import ROUTE

Clock = Callable[[], float]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MOST_WAIT_S = 30.0
LONGEST_GOAL = 500
HIGHEST_PRIORITY = 9
_USUAL_PRIORITY = 5
_MOST_DEPENDENCIES = 16
_MOST_LISTED = 200
_KEY = re.compile(r"[\x21-\x7e]{1,100}")
_KEYS = ("kind", "goal", "priority", "depends_on", "wait_s")
_STATES = ("open", "done", "handed_over", "failed", "cancelled")
_LACKS = {"policy": "no_policy", "answer": "no_wording"}
_EFFECTS = ("open_ticket", "pay")


class BadTask(Exception):
    """The request is at fault; `param` names the offending parameter."""

    def __init__(self, message: str, param: str | None = None, status: int = 400) -> None:
        """Keep what the client will be told."""
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "BadRequestError", "param": param, "code": status}}


@dataclass(frozen=True)
class Asked:
    """A checked body of a submit."""

    kind: str
    goal: str
    priority: int
    depends_on: tuple[str, ...]
    wait_s: float

    @classmethod
    def of(cls, text: bytes) -> Asked:
        """Read it. Raises BadTask."""
        fields = _object(text)
        for name in fields:
            if name not in _KEYS:
                raise BadTask(f"unknown parameter {name!r}; known are {', '.join(_KEYS)}", str(name))
        kind, goal = fields.get("kind"), fields.get("goal")
        if kind not in SUBMITTED:
            raise BadTask(f"kind must be one of {', '.join(SUBMITTED)}", "kind")
        if not isinstance(goal, str) or len(goal) > LONGEST_GOAL or not ORDER.search(goal):
            raise BadTask(f"goal must name an order such as B-1001, in at most {LONGEST_GOAL} characters", "goal")
        priority = fields.get("priority", _USUAL_PRIORITY)
        if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= HIGHEST_PRIORITY:
            raise BadTask(f"priority must be a whole number from 0 to {HIGHEST_PRIORITY}, the highest", "priority")
        return cls(kind, goal, priority, _names(fields.get("depends_on", [])), wait_of(fields.get("wait_s", 0)))


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadTask(f"the body is not valid JSON: {problem}") from problem
    if not isinstance(fields, dict):
        raise BadTask("the body must be a JSON object")
    return fields


def _names(given: Any) -> tuple[str, ...]:
    strings = isinstance(given, list) and all(isinstance(name, str) and _KEY.fullmatch(name) for name in given)
    if not strings or len(given) > _MOST_DEPENDENCIES:
        raise BadTask(f"depends_on must be a list of at most {_MOST_DEPENDENCIES} ids or keys of tasks", "depends_on")
    return tuple(dict.fromkeys(given))


def wait_of(given: Any) -> float:
    """Seconds that a client wants to wait, never more than the bound. Raises BadTask."""
    try:
        wait_s = float(given)
    except (TypeError, ValueError):
        wait_s = -1.0
    if not wait_s >= 0:
        raise BadTask("wait_s must be a number of seconds, not below 0", "wait_s")
    return min(wait_s, MOST_WAIT_S)


@dataclass(frozen=True)
class Desktop:
    """What the routes work with. `wall` is Unix time, `mono` CLOCK_MONOTONIC, both in seconds."""

    store: TaskStore
    bell: Bell
    rules: AgentSettings
    wall: Clock
    mono: Clock
    rng: random.Random

    def new_task(self, asked: Asked, key: str | None, traceparent: str | None) -> Task:
        """The task that a submit asks for."""
        name, now, waits = f"t-{self.rng.getrandbits(64):016x}", self.wall(), self.rules.waits
        return Task(
            id=name,
            key=key or name,
            kind=asked.kind,
            agent=KINDS[asked.kind].agent,
            goal=asked.goal,
            trace_id=trace_of({"traceparent": traceparent or ""}, self.rng).trace_id,
            priority=asked.priority,
            created=now,
            deadline=now + waits.task_s + (waits.dependency_s if asked.depends_on else 0),
            depends_on=asked.depends_on,
            edition=edition(asked.kind),
            plan=first_plan(asked.kind),
            waits_for=asked.depends_on,
            wait_until=now + waits.dependency_s if asked.depends_on else None,
        )

    async def ended(self, task: Task, wait_s: float) -> Task:
        """The task once it has ended, or as it is when the wait is over."""
        until = self.mono() + wait_s
        while task.phase == "open" and (left_s := until - self.mono()) > 0:
            await self.bell.wait(left_s)
            task = self.store.find(task.id) or task
        return task

    def shown(self, task: Task) -> dict[str, Any]:
        """A task as clients see it."""
        return {
            "id": task.id,
            "key": task.key,
            "kind": task.kind,
            "agent": task.agent,
            "state": "running" if task.phase == "open" else task.phase,
            "answer": task.answer,
            "reason": task.reason,
            "degraded": degraded(task),
            "references": dict(task.found),
            "steps": self.store.account.steps(task.id),
            "effects": [self._effect(task, step, reference) for step, reference in task.found if step in _EFFECTS],
        }

    def _effect(self, task: Task, step: str, reference: str) -> dict[str, Any]:
        return {"task": task.id, "step": step, "reference": reference, "result": self.store.result(reference)}


def degraded(task: Task) -> list[str]:
    """What an answer lacks, one word each; a declared plan in place of the model's lacks nothing."""
    lacks = [_LACKS[step] for step in task.missing if step in _LACKS]
    return [*lacks, "handed_over"] if task.phase == "handed_over" else lacks


def make_app(desktop: Desktop) -> web.Application:
    """The application around an open store."""
    routes = _Routes(desktop)
    app = web.Application(middlewares=[_told], client_max_size=1 << 16)
    app.add_routes([
        web.post("/v1/agent/tasks", routes.submit),
        web.get("/v1/agent/tasks", routes.listing),
        web.get("/v1/agent/tasks/{task}", routes.show),
        web.delete("/v1/agent/tasks/{task}", routes.cancel),
        web.get("/ping", routes.ping),
        web.get(ROUTE, routes.storage),
        web.get("/metrics", routes.metrics),
        web.get("/debug/events", routes.events),
    ])  # fmt: skip
    return app


@web.middleware
async def _told(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadTask as problem:
        return web.json_response(problem.body, status=problem.status)
    except Conflict as problem:
        return web.json_response(BadTask(str(problem), "idempotency-key").body, status=409)
    except Circle as problem:
        return web.json_response(BadTask(str(problem), "depends_on").body, status=409)
    except Full as problem:
        return web.json_response(BadTask(str(problem)).body, status=503, headers={"Retry-After": "1"})


class _Routes:
    """Read, check, ask the store, write."""

    def __init__(self, desktop: Desktop) -> None:
        self._desk = desktop

    async def submit(self, request: web.Request) -> web.Response:
        asked, key = Asked.of(await request.read()), request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise BadTask("idempotency-key must be 1 to 100 printable characters", "idempotency-key")
        task = self._desk.store.submit(self._desk.new_task(asked, key, request.headers.get("traceparent")))
        self._desk.bell.ring()
        return self._reply(await self._desk.ended(task, min(asked.wait_s, _patience_s(request))))

    def _reply(self, task: Task) -> web.Response:
        headers = {"x-degraded": ",".join(degraded(task))} if degraded(task) else {}
        status = 202 if task.phase == "open" else 200
        return web.json_response(self._desk.shown(task), status=status, headers=headers)

    def _find(self, request: web.Request) -> Task:
        name = request.match_info["task"]
        task = self._desk.store.find(name)
        if task is None:
            raise BadTask(f"there is no task {name}", "task", status=404)
        return task

    async def show(self, request: web.Request) -> web.Response:
        wait_s = min(wait_of(request.query.get("wait_s", 0)), _patience_s(request))
        return self._reply(await self._desk.ended(self._find(request), wait_s))

    async def listing(self, request: web.Request) -> web.Response:
        state = request.query.get("state")
        if state not in (None, *_STATES):
            raise BadTask(f"state must be one of {', '.join(_STATES)}", "state")
        tasks = [self._desk.shown(task) for task in self._desk.store.newest(state, _MOST_LISTED)]
        return web.json_response({"tasks": tasks})

    async def cancel(self, request: web.Request) -> web.Response:
        task = self._find(request)
        found = self._desk.store.cancel(task.id, self._desk.wall(), self._desk.mono())
        self._desk.bell.ring()
        return self._reply(found or task)

    async def ping(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def storage(self, _: web.Request) -> web.Response:
        status, told = self._desk.store.check()
        return web.json_response(told, status=status)

    async def metrics(self, _: web.Request) -> web.Response:
        text = "".join(f"{line}\n" for line in exposition(self._desk.store, self._desk.wall()))
        return web.Response(body=text.encode(), headers={"content-type": CONTENT_TYPE})

    async def events(self, request: web.Request) -> web.Response:
        after = request.query.get("after", "0")
        if not after.isdecimal():
            raise BadTask("after must be a sequence number", "after")
        return web.json_response(self._desk.store.account.events(int(after)))


def _patience_s(request: web.Request) -> float:
    """How long the caller will listen: its deadline, less a moment for the reply to travel."""
    try:
        return max(0.0, float(request.headers.get(HEADER, "inf")) / 1000 - 0.1)
    except ValueError:
        raise BadTask(f"{HEADER} must be a number of milliseconds", HEADER) from None


def exposition(store: TaskStore, now: float) -> Iterator[str]:
    """The lines of /metrics: counts that survive restarts, and how many tasks stand where."""
    name = ""
    for count, labels, value in store.account.counts():
        if count != name:
            yield f"# TYPE {count} counter"
            name = count
        yield f"{series(count, labels)} {value}"
    yield "# TYPE agent_tasks gauge"
    standing = {(agent, state): 0 for agent in sorted({kind.agent for kind in KINDS.values()}) for state in _LIVE}
    for (agent, state), number in (standing | store.standing(now)).items():
        yield f"{series('agent_tasks', {'agent': agent, 'state': state})} {number}"


_LIVE = ("queued", "running", "waiting")
