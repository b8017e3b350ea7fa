"""Strangers' traffic at a front door: open loop, seeded, and in nobody's samples, since its answers are thrown away.

What is sent is laid out by the experiment's own load driver, a stretch at a time, for as long as the harm shall be.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.entropy import SeededEntropy
from chaos.load.driver import LoadDriver
from chaos.load.prompts import Prompt, load_prompts, prompts_dirs
from chaos.load.schedule import LoadPlan, plan_load
from chaos.load.transport import HttpTransport
from chaos.saboteurs.life import Orders, fork_companion
from chaos.spec.model import Client, Load
from chaos.units import Duration, Rate

_STRETCH_S = 10.0
_PROMPTS = "small-talk"


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """Orders: `front_doors` (`host:port`), `seed`, and `traffic`: records of `rate` per second, `every_s` (arrivals of
    so long come together; 0 spreads them), `prompt_words` or null, `max_tokens`, `timeout_s` and `retries`.
    """
    companion = fork_companion(lambda: asyncio.run(_send(orders)))
    try:
        yield
    finally:
        os.kill(companion, signal.SIGKILL)
        os.waitpid(companion, 0)


async def _send(orders: Orders) -> None:
    prompts = load_prompts(_PROMPTS, prompts_dirs(None))
    await asyncio.gather(
        *(
            _crowd(door, record, number, int(orders["seed"]), prompts)
            for door in orders["front_doors"]
            for number, record in enumerate(orders["traffic"])
        )
    )


async def _crowd(door: str, record: Mapping[str, Any], number: int, seed: int, prompts: tuple[Prompt, ...]) -> None:
    """One kind of strangers; each stretch begins at its time, whatever became of the one before."""
    clock, running = MonotonicClock(), set[asyncio.Task[Any]]()
    load, start, stretch = load_of(record, f"strangers-{number}"), clock.now(), 0
    async with HttpTransport(f"http://{door}", lambda: clock.now() - start) as transport:
        while True:
            plan = plan_of(load, prompts, float(record["every_s"]), seed + stretch)
            begin = start + stretch * _STRETCH_S
            driver = LoadDriver(plan, transport, clock, lambda _: None, origin=start)
            task = asyncio.create_task(driver.run(begin, asyncio.Event()))
            running.add(task)
            task.add_done_callback(running.discard)
            stretch += 1
            await clock.sleep_until(begin + _STRETCH_S)


def load_of(record: Mapping[str, Any], name: str) -> Load:
    """The load that a record describes."""
    return Load(
        name=name,
        route="chat",
        rate=Rate(record["rate"]),
        prompt_words=record["prompt_words"],
        max_tokens=int(record["max_tokens"]),
        client=Client(timeout=Duration(record["timeout_s"]), retries=int(record["retries"]), backoff=Duration(0)),
    )


def plan_of(load: Load, prompts: tuple[Prompt, ...], every_s: float, seed: int) -> LoadPlan:
    """One stretch. With `every_s` all that is due within so long comes at its beginning, evenly many each time."""
    spaced = replace(load, arrivals="constant") if every_s else load
    laid = plan_load(spaced, prompts, seed, SeededEntropy(seed), _STRETCH_S)
    if not every_s:
        return laid
    bunched = (replace(request, at_s=request.at_s - request.at_s % every_s) for request in laid.requests)
    return replace(laid, requests=tuple(bunched))
