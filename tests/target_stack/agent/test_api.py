"""What clients may ask, over real HTTP with agents in the same loop."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from aiohttp.test_utils import TestClient, TestServer

from target_stack.agent.api import Desktop, make_app
from target_stack.agent.bell import Bell
from target_stack.agent.line import LocalDesk
from target_stack.agent.plans import AGENTS
from target_stack.agent.worker import Worker

COMPLAINT = {"kind": "complaint", "goal": "The kettle of order B-1003 leaks."}


def serve(place, hands, use):
    """Run `use(client)` against the routes, with both agents at work in the background."""

    async def all_of_it():
        bell, clock = Bell(), time.time
        desk = LocalDesk(place.store, bell, clock, time.monotonic)
        app = make_app(Desktop(place.store, bell, place.rules, clock, time.monotonic, random.Random(1)))
        workers = [Worker(name, desk, hands, place.rules, clock, random.Random(1)) for name in AGENTS]
        working = [asyncio.create_task(worker.run()) for worker in workers]
        async with TestClient(TestServer(app)) as client:
            try:
                return await use(client)
            finally:
                for one in working:
                    one.cancel()
                await asyncio.gather(*working, return_exceptions=True)

    return asyncio.run(all_of_it())


async def ask(client, method, path, body=None, **headers):
    async with client.request(method, path, json=body, headers=headers) as reply:
        return reply.status, await reply.json(content_type=None), reply.headers


def test_a_submitted_task_is_waited_for_and_shown_with_its_steps_and_effects(world, hands):
    place = world()

    async def use(client):
        status, task, headers = await ask(client, "POST", "/v1/agent/tasks", {**COMPLAINT, "wait_s": 20})
        assert (status, task["state"]) == (200, "done")
        assert "T-1" in task["answer"]
        assert [("open_ticket", "T-1")] == [(e["step"], e["result"]["ticket"]) for e in task["effects"]]
        assert ["plan", "look_up", "open_ticket", "answer"] == [step["step"] for step in task["steps"]]
        assert "x-degraded" not in headers
        assert (200, task) == (await ask(client, "GET", f"/v1/agent/tasks/{task['id']}"))[:2]
        assert task == (await ask(client, "GET", "/v1/agent/tasks?state=done"))[1]["tasks"][0]

    serve(place, hands(place), use)


def test_the_same_key_is_the_same_task_and_another_goal_under_it_a_conflict(world, hands):
    place = world()

    async def use(client):
        first = await ask(client, "POST", "/v1/agent/tasks", {**COMPLAINT, "wait_s": 20}, **{"idempotency-key": "k"})
        again = await ask(client, "POST", "/v1/agent/tasks", COMPLAINT, **{"idempotency-key": "k"})
        assert first[1] == again[1] == (await ask(client, "GET", "/v1/agent/tasks/k"))[1]
        other = {**COMPLAINT, "goal": "B-1001 is late."}
        status, told, _ = await ask(client, "POST", "/v1/agent/tasks", other, **{"idempotency-key": "k"})
        assert (status, told["error"]["param"]) == (409, "idempotency-key")
        assert 1 == len(place.ledger.effects)

    serve(place, hands(place), use)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({**COMPLAINT, "kind": "payout"}, "kind"),
        ({**COMPLAINT, "kind": ["complaint"]}, "kind"),
        ({"kind": "complaint"}, "goal"),
        ({**COMPLAINT, "goal": "no order"}, "goal"),
        ({**COMPLAINT, "goal": "B-1001" + "!" * 500}, "goal"),
        ({**COMPLAINT, "priority": 10}, "priority"),
        ({**COMPLAINT, "priority": True}, "priority"),
        ({**COMPLAINT, "depends_on": "t-1"}, "depends_on"),
        ({**COMPLAINT, "depends_on": ["a b"]}, "depends_on"),
        ({**COMPLAINT, "wait_s": "long"}, "wait_s"),
        ({**COMPLAINT, "wait_s": -1}, "wait_s"),
        ({**COMPLAINT, "colour": 1}, "colour"),
    ],
)
def test_a_senseless_task_is_refused_with_the_parameter_at_fault(world, hands, body, param):
    place = world()

    async def use(client):
        status, told, _ = await ask(client, "POST", "/v1/agent/tasks", body)
        assert (status, told["error"]["param"]) == (400, param)
        assert place.store.newest(None, 9) == []

    serve(place, hands(place), use)


def test_a_wait_is_bounded_and_a_task_that_goes_on_is_202_and_can_be_cancelled(world, hands, waits):
    place = world(waits=waits(agent_s=60, task_s=60))
    place.asleep = frozenset({"approver"})

    async def use(client):
        refund = {"kind": "refund", "goal": "2 cents of B-1003 back, please."}
        began = time.monotonic()
        status, task, _ = await ask(
            client, "POST", "/v1/agent/tasks", {**refund, "wait_s": 60}, **{"x-deadline-ms": "400"}
        )
        assert (status, task["state"]) == (202, "running")
        assert time.monotonic() - began < 30
        status, task, _ = await ask(client, "DELETE", f"/v1/agent/tasks/{task['id']}")
        assert (status, task["state"]) == (200, "cancelled")

    serve(place, hands(place, sleeps=("approver",)), use)


def test_a_task_that_a_person_takes_says_so_in_the_header(world, hands):
    place = world()

    async def use(client):
        status, task, headers = await ask(client, "POST", "/v1/agent/tasks", {**COMPLAINT, "wait_s": 20})
        assert (status, task["state"], headers["x-degraded"]) == (200, "handed_over", "handed_over")

    serve(place, hands(place, refuses="open_ticket"), use)


def test_ping_metrics_events_and_unknown_tasks(world, hands):
    place = world()

    async def use(client):
        await ask(client, "POST", "/v1/agent/tasks", {"kind": "complaint", "goal": "B-9999 leaks.", "wait_s": 20})
        async with client.get("/metrics") as reply:
            text = await reply.text()
        assert 'agent_tasks{agent="support",state="failed"} 1' in text
        assert 'agent_tool_calls_total{tool="order_status",outcome="refused"} 1' in text
        events = (await ask(client, "GET", "/debug/events"))[1]
        assert [("task_failed", "look_up: not_found")] == [(e["name"], e["reason"]) for e in events["events"]]
        assert [] == (await ask(client, "GET", f"/debug/events?after={events['last']}"))[1]["events"]
        assert 200 == (await ask(client, "GET", "/ping"))[0]
        assert 404 == (await ask(client, "GET", "/v1/agent/tasks/t-0"))[0]
        assert 400 == (await ask(client, "GET", "/debug/events?after=x"))[0]
        assert 400 == (await ask(client, "GET", "/v1/agent/tasks?state=sad"))[0]

    serve(place, hands(place), use)
