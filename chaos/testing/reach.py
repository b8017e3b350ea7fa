"""Who serves at an address of an in-memory stack, as a client of a database or a cache finds out."""

from __future__ import annotations

import asyncio

from chaos.ports import Wire
from chaos.testing.stack import FakeProxy, FakeSupervisor, FakeTarget


async def reach(supervisor: FakeSupervisor, proxy: FakeProxy, address: str, wire: Wire, timeout_s: float) -> FakeTarget:
    """The target of this wire that answers at the address, its own or a listener's. Raises ConnectionRefusedError when
    nobody lives there, TimeoutError after `timeout_s` when who does is frozen.
    """
    await asyncio.sleep(0)
    listener = proxy.at(address)
    owner = supervisor.at(listener.upstream if listener else address)
    if owner is None or owner.record.wire != wire or not supervisor.alive(owner):
        raise ConnectionRefusedError(f"nobody listens at {address}")
    if not supervisor.runs(owner):
        await asyncio.sleep(timeout_s)
        raise TimeoutError(f"{address} did not answer")
    return owner
