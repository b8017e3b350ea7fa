"""Tasks for the agents: passed through with deadline, key, breaker and trace, and never made twice."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from aiohttp import web

TASK = {"kind": "complaint", "goal": "The kettle of order B-1003 leaks."}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class FakeAgents:
    """Answers `reply`; the next `losses` replies are lost after the task was taken."""

    def __init__(self):
        self.reply = (200, {"id": "t-1", "state": "done", "answer": "T-1", "degraded": []})
        self.losses = 0
        self.delay_s = 0.0
        self.seen = []

    async def take(self, request):
        self.seen.append((await request.json(), request.headers))
        await asyncio.sleep(self.delay_s)
        if self.losses:
            self.losses -= 1
            request.transport.abort()
        status, body = self.reply
        return web.json_response(body, status=status)


@asynccontextmanager
async def with_agents(serve, **policies):
    """A gateway in front of fake agents."""
    agents, app = FakeAgents(), web.Application()
    app.add_routes([web.post("/v1/agent/tasks", agents.take)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with serve(gateway={"agents": url}, **policies) as stack:
            yield stack, agents
    finally:
        await runner.cleanup()


async def test_a_task_goes_through_with_its_key_its_trace_and_the_time_that_is_left(serve):
    async with with_agents(serve) as (stack, agents):
        headers = {"idempotency-key": "k-1", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        reply = await stack.post("/v1/agent", json=TASK, headers=headers)
        body, sent = agents.seen[0]
        assert (reply.status, reply.json["answer"]) == (200, "T-1")
        assert {**TASK, "wait_s": 4.0} == body
        assert ("k-1", TRACE) == (sent["idempotency-key"], sent["traceparent"][3:35])
        assert 0 < int(sent["x-deadline-ms"]) <= 4000
        assert "x-degraded" not in reply.headers


async def test_a_lost_reply_is_asked_for_again_under_the_same_key(serve):
    async with with_agents(serve) as (stack, agents):
        agents.losses = 1
        reply = await stack.post("/v1/agent", json=TASK)
        assert reply.status == 200
        keys = [headers["idempotency-key"] for _, headers in agents.seen]
        assert keys == [reply.headers["x-trace-id"]] * 2


async def test_an_answer_that_lacks_something_says_so(serve):
    async with with_agents(serve) as (stack, agents):
        agents.reply = (200, {"id": "t-1", "state": "handed_over", "answer": "A person.", "degraded": ["handed_over"]})
        reply = await stack.post("/v1/agent", json=TASK)
        assert (reply.status, reply.headers["x-degraded"]) == (200, "handed_over")
        assert 'gateway_requests_total{route="agent",outcome="degraded"} 1' in (await stack.get("/metrics")).text


async def test_a_task_that_goes_on_and_one_that_is_refused_are_passed_on_as_they_are(serve):
    async with with_agents(serve) as (stack, agents):
        for status in (202, 400, 409):
            agents.reply = (status, {"state": "running"})
            assert status == (await stack.post("/v1/agent", json=TASK)).status


async def test_agents_that_do_not_answer_open_their_breaker_and_cost_nobody_any_time(serve):
    async with with_agents(serve, deadline={"total_s": 5.0, "per_try_s": 4.0, "agent_s": 0.3}) as (stack, agents):
        agents.delay_s = 60.0
        statuses = [(await stack.post("/v1/agent", json=TASK)).status for _ in range(4)]
        assert [504, 504, 504, 503] == statuses
        assert ["agent"] == [event["dependency"] for event in stack.events("breaker_opened")]


async def test_without_agents_the_route_says_so(serve):
    async with serve() as stack:
        assert 501 == (await stack.post("/v1/agent", json=TASK)).status
