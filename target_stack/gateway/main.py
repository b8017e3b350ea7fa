"""The gateway as a process: bind, serve until SIGTERM, then finish what is in flight."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from target_stack.gateway.admin import open_admin
from target_stack.gateway.app import make_app
from target_stack.gateway.config import GatewayConfig
from target_stack.gateway.wiring import open_gateway

_CUT_S = 0.05


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM or SIGINT. Raises ValueError or KeyError for a bad config, OSError for a taken port."""
    asyncio.run(_serve(GatewayConfig.from_config(config)))


async def _serve(config: GatewayConfig) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_gateway(config, time.monotonic, random.Random(config.seed)) as gateway:
        # What is left when the drain is over has had its time, and its last words.
        runner = web.AppRunner(
            make_app(gateway),
            handler_cancellation=config.policies.answer.client_gone == "stop",
            access_log=None,
            shutdown_timeout=_CUT_S,
        )
        await runner.setup()
        async with open_admin(gateway):
            await web.TCPSite(runner, config.host, config.port, reuse_address=True).start()
            await stop.wait()
            await gateway.drain.run()
            await runner.cleanup()
