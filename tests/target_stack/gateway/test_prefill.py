"""Prefill before decode: references go with their prompts, waits end, and nobody needs prefill to be served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from target_stack.weaknesses import find_weaknesses, plant

pytestmark = pytest.mark.system

BOUNDS = {"prefill_s": 0.4, "transfer_s": 0.4}


class Prefill:
    """Answers with a reference of its own for each prompt, or of another's; `frozen` says nothing, `status` refuses."""

    def __init__(self) -> None:
        self.frozen = False
        self.status = 200
        self.mixed_up = False
        self.asked: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        if self.frozen:
            await asyncio.sleep(60)
        name = "another's" if self.mixed_up else request.headers["x-request-id"]
        reference = {"do_remote_prefill": True, "remote_request_id": f"{name}-r{len(self.asked)}"}
        return web.json_response({"kv_transfer_params": reference}, status=self.status)


@asynccontextmanager
async def disaggregated(serve: Any, weakness: str = "", **policies: Any) -> AsyncIterator[tuple[Any, Prefill]]:
    prefill = Prefill()
    planted = plant(find_weaknesses([weakness] if weakness else []), "gateway", {"policies": policies})
    own = {"outlier": {"liveness_period_s": 60}, **planted["policies"]}
    own["disaggregation"] = {**BOUNDS, **own.get("disaggregation", {})}
    app = web.Application()
    app.router.add_post("/v1/chat/completions", prefill.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with serve(gateway={"prefill": [{"name": "prefill-a", "url": url}]}, **own) as stack:
            yield stack, prefill
    finally:
        await runner.cleanup()


def references(stack: Any) -> list[str | None]:
    bodies = [*stack.a.asked, *stack.b.asked]
    names = (str(body.get("kv_transfer_params", {}).get("remote_request_id")) for body in bodies)
    return sorted(name.rpartition("-")[2] for name in names)


async def test_the_prompt_is_computed_once_and_its_reference_goes_to_the_engine_that_answers(serve: Any) -> None:
    async with disaggregated(serve) as (stack, prefill):
        reply = await stack.chat(max_tokens=9, min_tokens=3)
        assert (reply.content, reply.headers.get("x-degraded")) == ("Hello there", None)
        (asked,) = prefill.asked
        assert (asked["max_tokens"], asked["stream"], asked["kv_transfer_params"]["do_remote_decode"]) == (
            1,
            False,
            True,
        )
        assert "min_tokens" not in asked
        assert references(stack) == ["r1"]


async def test_each_request_has_a_reference_of_its_own(serve: Any) -> None:
    async with disaggregated(serve) as (stack, _):
        for _ in range(2):
            await stack.chat()
        assert references(stack) == ["r1", "r2"]


async def test_without_prefill_the_prompt_is_computed_where_it_is_answered_and_the_answer_says_so(serve: Any) -> None:
    async with disaggregated(serve) as (stack, prefill):
        prefill.status = 500
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-degraded"]) == ("Hello there", "no_prefill")
        assert references(stack) == ["None"]


async def test_a_prefill_that_fails_again_and_again_is_not_asked_for_a_while(serve: Any) -> None:
    async with disaggregated(serve, breaker={"open_s": 60, "consecutive_failures": 3}) as (stack, prefill):
        prefill.status = 500
        replies = [await stack.chat() for _ in range(6)]
        assert [reply.content for reply in replies] == ["Hello there"] * 6
        assert len(prefill.asked) == 3
        assert stack.events("breaker_opened")[0]["dependency"] == "prefill"


async def test_nobody_waits_longer_for_a_frozen_prefill_than_its_limit(serve: Any) -> None:
    async with disaggregated(serve) as (stack, prefill):
        prefill.frozen = True
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-degraded"]) == ("Hello there", "no_prefill")
        assert 0.39 < reply.took_s < 0.6


async def test_a_transfer_that_does_not_end_is_given_up_and_the_other_engine_computes_the_prompt(serve: Any) -> None:
    async with disaggregated(serve) as (stack, _):
        stack.a.frozen = True  # it fetches, for ever
        stack.only_a()
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-served-by"]) == ("Hello there", "engine-b")
        assert reply.headers["x-degraded"] == "no_prefill"
        assert references(stack) == ["None", "r1"]
        assert stack.events("replica_ejected") == []  # one lost transfer is no proof against the engine


async def test_an_engine_that_never_gets_a_prompt_leaves_rotation(serve: Any) -> None:
    async with disaggregated(serve) as (stack, _):
        stack.a.frozen = True
        stack.only_a()
        for _ in range(3):
            await stack.chat()
        assert stack.events("replica_ejected")[0]["reason"] == "no_transfer"


async def test_a_500_for_a_lost_prompt_is_made_good_at_once(serve: Any) -> None:
    async with disaggregated(serve) as (stack, _):
        stack.a.script = (500,)
        stack.only_a()
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-degraded"]) == ("Hello there", "no_prefill")


async def test_a_reference_that_names_another_request_is_not_used(serve: Any) -> None:
    async with disaggregated(serve) as (stack, prefill):
        prefill.mixed_up = True
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-degraded"]) == ("Hello there", "no_prefill")
        assert references(stack) == ["None"]


# The mistakes that can be planted.


async def test_kv_wait_unbounded_lets_a_user_wait_for_a_transfer_as_long_as_for_an_answer(serve: Any) -> None:
    async with disaggregated(serve, "kv_wait_unbounded") as (stack, _):
        stack.a.frozen = stack.b.frozen = True
        assert (await stack.chat()).took_s >= 4.0  # the limit of a try


async def test_no_way_around_prefill_leaves_the_main_model_without_work(serve: Any) -> None:
    async with disaggregated(serve, "prefill_without_detour") as (stack, prefill):
        prefill.status = 500
        reply = await stack.chat()
        assert reply.headers["x-degraded"] == "fallback_model"
        assert references(stack) == []


async def test_kv_references_swapped_hands_out_what_was_made_for_a_prompt_with_the_same_beginning(serve: Any) -> None:
    async with disaggregated(serve, "kv_references_swapped") as (stack, _):
        for tail in ("one", "two"):
            await stack.chat(messages=[{"role": "user", "content": f"Reference: {tail}"}])
        assert references(stack) == ["r1", "r1"]


async def test_kv_references_unchecked_hands_on_whatever_comes(serve: Any) -> None:
    async with disaggregated(serve, "kv_references_unchecked") as (stack, prefill):
        prefill.mixed_up = True
        await stack.chat()
        assert references(stack) == ["r1"]
