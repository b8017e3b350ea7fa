"""Serve an aiohttp application: on one loopback address until SIGTERM, or on a socket for its owner alone."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from aiohttp import web

DRAIN_S = 2.0


def split_address(address: str) -> tuple[str, int]:
    """`127.0.0.1:80` in two. Raises ValueError."""
    host, _, port = address.rpartition(":")
    return host, int(port)


async def _serve(app: web.Application, listen: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=DRAIN_S)
    await runner.setup()
    try:
        host, port = split_address(listen)
        await web.TCPSite(runner, host, port, reuse_address=True).start()
        await stop.wait()
    finally:
        await runner.cleanup()


async def listen_privately(app: web.Application, path: Path) -> web.AppRunner:
    """Listen on a Unix socket that only its owner may open (mode 600); `cleanup()` of the result closes it. Raises
    OSError.
    """
    path.unlink(missing_ok=True)  # noqa: ASYNC240  # one local call, before anything is served
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    before = os.umask(0o177)
    try:
        await web.UnixSite(runner, str(path)).start()
    finally:
        os.umask(before)
    return runner


def serve_until_term(app: web.Application, listen: str) -> None:
    """Block until SIGTERM or SIGINT, then let open requests finish for up to 2 s. Raises OSError for a taken port."""
    asyncio.run(_serve(app, listen))
