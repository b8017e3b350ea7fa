"""How late does the load driver send? Ours against a plain asyncio pacer with absolute targets, interleaved in one run.

    python benchmarks/load.py [--seconds 4] [--rounds 3]

Both send the same Poisson schedules to one local aiohttp server in a process of its own, through the same aiohttp
transport, so the only difference is who says when. `bare` is the same schedule slept through by the kernel alone
(clock_nanosleep in a thread): what this machine, with its neighbours, can do at best at this moment. Lateness is sent
minus due, in milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.entropy import SeededEntropy
from chaos.load.arrivals import poisson
from chaos.load.driver import drive
from chaos.load.prompts import Prompt
from chaos.load.report import quantile
from chaos.load.schedule import http_request, plan_load
from chaos.load.stopwatch import Question, Stopwatch
from chaos.load.transport import HttpTransport
from chaos.spec.model import Load
from chaos.units import Rate

CLOCK = MonotonicClock()
PROMPTS = (Prompt("q", question="Hello?"),)
BODY = b'{"choices":[{"index":0,"message":{"content":"hello"},"finish_reason":"stop"}]}'


async def echo() -> None:
    """Serve one fixed answer; print the port."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=BODY, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


@contextmanager
def server() -> Iterator[str]:
    """The echo server in a process of its own."""
    with subprocess.Popen([sys.executable, __file__, "--echo"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def load_of(rate_per_s: float) -> Load:
    return Load(name="bench", route="chat", rate=Rate(rate_per_s), stream=False)


def ours(front_door: str, rate_per_s: float, seconds: float, seed: int) -> list[float]:
    """Lateness of the driver that runs use."""
    plan = plan_load(load_of(rate_per_s), PROMPTS, seed, SeededEntropy(seed), seconds)

    async def main() -> list[float]:
        now, outcomes = CLOCK.now(), list[str]()
        reports = await drive(
            [plan],
            front_door,
            CLOCK,
            lambda row: outcomes.append(row.outcome),
            asyncio.Event(),
            start=now + 0.1,
            origin=now,
        )
        assert outcomes.count("good") == len(plan.requests), "the echo server did not keep up"
        return list(reports[0].lateness_s)

    return asyncio.run(main())


def plain(front_door: str, rate_per_s: float, seconds: float, seed: int) -> list[float]:
    """Lateness of one task per arrival, each asleep with asyncio.sleep until its absolute time."""
    plan = plan_load(load_of(rate_per_s), PROMPTS, seed, SeededEntropy(seed), seconds)

    async def main() -> list[float]:
        start, late = time.monotonic() + 0.1, list[float]()
        async with HttpTransport(front_door, time.monotonic) as transport, asyncio.TaskGroup() as group:

            async def send(number: int, due: float) -> None:
                sent = time.monotonic()
                late.append(sent - due)
                wire = http_request(plan.load, plan.requests[number], 1)
                await transport.exchange(wire, Stopwatch(Question(intended_s=due), sent))

            for request in plan.requests:
                due = start + request.at_s
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                group.create_task(send(request.number, due))
        return late

    return asyncio.run(main())


def bare(_front_door: str, rate_per_s: float, seconds: float, seed: int) -> list[float]:
    """Lateness of the kernel's own sleep in a thread that does nothing else."""
    late: list[float] = []

    def sleeper() -> None:
        start = time.monotonic() + 0.1
        for at_s in poisson(rate_per_s, seconds, random.Random(seed)):
            time.sleep(max(0.0, start + at_s - time.monotonic()))
            late.append(time.monotonic() - start - at_s)

    thread = threading.Thread(target=sleeper)
    thread.start()
    thread.join()
    return late


PACERS: tuple[tuple[str, Callable[[str, float, float, int], list[float]]], ...] = (
    ("ours", ours),
    ("plain asyncio", plain),
    ("bare", bare),
)


def measure(front_door: str, rate_per_s: float, seconds: float, rounds: int) -> None:
    """Interleave the pacers and print one line each."""
    late: dict[str, list[float]] = {name: [] for name, _ in PACERS}
    for turn in range(rounds):
        for name, pacer in PACERS:
            late[name] += pacer(front_door, rate_per_s, seconds / rounds, turn)
    for name, values in late.items():
        p50, p99 = (1000 * (quantile(values, share) or 0.0) for share in (0.5, 0.99))
        print(f"{rate_per_s:>5.0f}/s  {name:<14} {len(values):>6} {p50:>9.3f} {p99:>9.3f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of each measurement, split over the rounds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        asyncio.run(echo())
        return
    print(f"{'rate':>7}  {'pacer':<14} {'sent':>6} {'p50 ms':>9} {'p99 ms':>9}")
    with server() as front_door:
        for rate_per_s in (50.0, 500.0):
            measure(front_door, rate_per_s, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
