"""The agents as a component: the first agent lives with the store and the HTTP routes, every other in a process apart.

start    lock the folder, fork the other agents, open the store: whatever a dead process had in hand is due at once
SIGTERM  stop working; tasks stay as they are and go on at the next start
an agent's process ends      so do we, and whoever supervises us starts all anew
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from target_stack.agent.api import Desktop, make_app
from target_stack.agent.bell import Bell
from target_stack.agent.desk import Desk
from target_stack.agent.line import LINE_BYTES, LineGone, LocalDesk, RemoteDesk, serve_line
from target_stack.agent.performer import RealPerformer
from target_stack.agent.plans import AGENTS
from target_stack.agent.settings import AgentConfig
from target_stack.agent.steady import Clock, steady_clock, this_boot
from target_stack.agent.store import TaskStore
from target_stack.agent.worker import Worker
from target_stack.gateway.policies.retry_budget import make_retry_budget
from target_stack.gateway.policies.settings import RetryBudgetSettings
from target_stack.process import die_with_parent, reap, run_as_child, set_title
from target_stack.tools.client import open_tools
from target_stack.web_service import split_address

_log = logging.getLogger(__name__)
_LOCK_PATIENCE_S = 5.0


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM or the death of an agent. Raises ValueError or KeyError for a bad configuration."""
    settings = AgentConfig.from_config(config)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    with _locked(Path(settings.data_dir)):
        clock = _clock(settings)
        others = {name: _fork_agent(settings, name, clock) for name in AGENTS[1:]}
        try:
            asyncio.run(_serve(settings, [line for _, line in others.values()], clock))
        finally:
            for pid, line in others.values():
                line.close()
                reap(pid)


def _clock(settings: AgentConfig) -> Clock:
    return time.time if settings.settings.clock == "wall" else steady_clock(Path(settings.data_dir), this_boot())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Nobody else works in this folder. The last life's other agents may need a moment to die."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        patience_end = time.monotonic() + _LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > patience_end:
                    raise
                time.sleep(0.01)
        yield
    finally:
        os.close(fd)


def _fork_agent(settings: AgentConfig, name: str, clock: Clock) -> tuple[int, socket.socket]:
    """Fork before any loop or thread exists. Only the child holds its end, so its death is an end of file here.

    It holds the folder's lock as well: no successor opens the store before the last of us is gone.
    """
    parent = os.getpid()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        run_as_child(lambda: _be_agent(settings, name, theirs, parent, clock), over=LineGone, what=f"the agent {name}")
    theirs.close()
    return child, ours


def _be_agent(settings: AgentConfig, name: str, line: socket.socket, parent: int, clock: Clock) -> None:
    die_with_parent(parent)
    set_title(f"agent {name}")
    asyncio.run(_work_apart(settings, name, line, clock))


async def _work_apart(settings: AgentConfig, name: str, line: socket.socket, clock: Clock) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=line, limit=LINE_BYTES)
    desk = RemoteDesk(reader, writer)
    async with _worker(settings, name, desk, random.Random(settings.seed), clock) as worker:
        await _first_end(desk.listen(), worker.run())


@asynccontextmanager
async def _worker(
    settings: AgentConfig, name: str, desk: Desk, rng: random.Random, clock: Clock
) -> AsyncIterator[Worker]:
    """An agent with its own way to the tools."""
    rules = settings.settings
    async with (
        aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
        ) as session,
        open_tools(settings.tools, settings.tokens.get(name, ""), rules.tool_rules) as tools,
    ):
        performer = RealPerformer(
            gateway=settings.gateway,
            model=settings.model,
            session=session,
            tools=tools,
            budget=make_retry_budget(RetryBudgetSettings()),
            most_tries=rules.tries.most,
            rng=rng,
        )
        yield Worker(name, desk, performer, rules, clock, rng)


async def _first_end(*work: Coroutine[Any, Any, None]) -> None:
    """Run side by side until one ends, then end the others. Raises what it raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()


async def _serve(settings: AgentConfig, lines: Sequence[socket.socket], clock: Clock) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    rules, bell = settings.settings, Bell()
    path = None if rules.checkpoint == "memory" else Path(settings.data_dir) / "tasks.sqlite"
    with contextlib.closing(TaskStore(path, rules)) as store:
        rng = random.Random(None if settings.seed is None else f"{settings.seed}/{store.life}")
        desk = LocalDesk(store, bell, clock, time.monotonic)
        async with AsyncExitStack() as stack:
            worker = await stack.enter_async_context(_worker(settings, AGENTS[0], desk, rng, clock))
            apart = [await _connected(line, desk, bell) for line in lines]
            app = make_app(Desktop(store, bell, rules, clock, time.monotonic, rng))
            await stack.enter_async_context(_listening(app, settings.listen))
            await _first_end(_wait(stop.wait()), worker.run(), *apart)
    if not stop.is_set():
        _log.error("an agent ended; so do we")


async def _wait(event: Awaitable[Any]) -> None:
    await event


async def _connected(line: socket.socket, desk: Desk, bell: Bell) -> Coroutine[Any, Any, None]:
    reader, writer = await asyncio.open_unix_connection(sock=line, limit=LINE_BYTES)
    return serve_line(desk, bell, reader, writer)


@asynccontextmanager
async def _listening(app: web.Application, listen: str) -> AsyncIterator[None]:
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        host, port = split_address(listen)
        await web.TCPSite(runner, host, port, reuse_address=True).start()
        yield
    finally:
        await runner.cleanup()
