"""The background watch: are the admitted replicas there, can the ejected ones make a token again, and whatever else
has to be looked at now and then.

Each replica is watched by a task of its own, so a frozen one delays nobody else's return.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from target_stack.gateway.policies.settings import OutlierSettings
from target_stack.gateway.replicas import Replica, ReplicaPool
from target_stack.gateway.telemetry import Telemetry

_TICK_S = 0.1


async def keep(
    pools: Iterable[ReplicaPool], ticks: Sequence[Callable[[], None]], settings: OutlierSettings, telemetry: Telemetry
) -> None:
    """Watch until cancelled; `ticks` are called ten times a second."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_tick(ticks))
        for pool in pools:
            for replica in pool:
                tasks.create_task(_watch(pool, replica, settings, telemetry))


async def _tick(ticks: Sequence[Callable[[], None]]) -> None:
    while True:
        await asyncio.sleep(_TICK_S)
        for tick in ticks:
            tick()


async def _watch(pool: ReplicaPool, replica: Replica, settings: OutlierSettings, telemetry: Telemetry) -> None:
    while True:
        if pool.admitted(replica):
            await asyncio.sleep(settings.liveness_period_s)
            if not await replica.client.reachable(settings.probe_timeout_s):
                pool.unreachable(replica)
            elif settings.evidence == "running" and (load := await replica.client.load(settings.probe_timeout_s)):
                pool.reported(replica, load)
        else:
            await asyncio.sleep(settings.probe_period_s)
            alive = await replica.client.probe(settings.probe_timeout_s)
            telemetry.metrics.probes.add(replica.name, "token" if alive else "none")
            if alive:
                pool.restored(replica)
