"""The life of an engine: fork the core, serve HTTP, and end as vLLM ends.

start    bind, fork the core, wait until it has loaded; only then listen
SIGTERM  refuse new calls; open ones are aborted, or finish within shutdown_timeout; then leave
core     dies: open calls fail, /health says 503, and the process ends by itself (status 0, as seen on the original)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from target_stack.engine import core_process
from target_stack.engine.api import Api
from target_stack.engine.config import EngineConfig
from target_stack.engine.link import CoreLink
from target_stack.engine.metrics import Metrics
from target_stack.process import reap, run_as_child

_log = logging.getLogger(__name__)
_LINGER_S = 0.4  # how long a server without core still answers: the original was gone within a second
_ABORT_S = 1.0  # a frozen core never confirms an abort


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM or the core's death. Raises ValueError for a bad configuration, OSError for a taken port."""
    settings = EngineConfig.from_json(config)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    with _bound(settings.address) as listener:
        child, connection = _fork_core(settings, listener)
        try:
            asyncio.run(_serve(settings, listener, connection))
        finally:
            connection.close()
            reap(child)


def _bound(address: tuple[str, int]) -> socket.socket:
    """The port is taken at once but refuses connections until the engine has loaded, as vLLM's does."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    return listener


def _fork_core(settings: EngineConfig, listener: socket.socket) -> tuple[int, socket.socket]:
    """Fork before any loop or thread exists. Only the core holds its end, so its death is an end of file here."""
    parent = os.getpid()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        ours.close()
        listener.close()
        run_as_child(lambda: core_process.run(settings, theirs, parent), over=EOFError, what="the engine core")
    theirs.close()
    return child, ours


async def _serve(settings: EngineConfig, listener: socket.socket, connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    terminated = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, terminated.set)
    metrics = Metrics(settings)
    _, link = await loop.create_connection(lambda: CoreLink(metrics, settings), sock=connection)
    if not await _first(terminated, link.died, link.ready):
        if terminated.is_set():
            return
        raise SystemExit("RuntimeError: Engine core initialization failed. See root cause above.")
    api = Api(settings, link, metrics)
    runner = web.AppRunner(
        api.application(),
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=settings.http_keep_alive_s,
        shutdown_timeout=_LINGER_S,
    )
    await runner.setup()
    await web.SockSite(runner, listener).start()
    _log.info("%s serves %s on %s", settings.name, settings.model, settings.listen)
    try:
        await _until_the_end(settings, api, link, terminated)
    finally:
        await runner.cleanup()


async def _until_the_end(settings: EngineConfig, api: Api, link: CoreLink, terminated: asyncio.Event) -> None:
    ends = (terminated,) if settings.keep_alive_on_engine_death else (terminated, link.died)
    await _first(*ends)
    if not terminated.is_set():
        _log.error("the engine core died; shutting down")
        await asyncio.sleep(_LINGER_S)
        return
    _log.info("SIGTERM: %d requests open, draining for %g s", link.open, settings.shutdown_timeout)
    api.draining = True
    for most_s in (settings.shutdown_timeout, _ABORT_S):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(api.idle.wait(), most_s)
        link.abort_all()


async def _first(*events: asyncio.Event) -> bool:
    """Wait for one of the events; whether the last of them is set and no other."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    return events[-1].is_set() and not any(event.is_set() for event in events[:-1])
