"""The stack of a run: the one that is up when it fits, else one of its own that is gone when the run is."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.inventory import Inventory
from chaos.ports import Host
from chaos.stacks.local import OWN_PROXY, LocalStack, StackTrouble, forget, start, stop, wait_ready

_USUAL = "embedded"


@dataclass(frozen=True)
class Lent:
    """A ready stack, and in one sentence where it comes from."""

    stack: LocalStack
    said: str


@dataclass(frozen=True)
class Kind:
    """Which stack is wanted: its profile, and the mistakes that are planted in it."""

    profile: str
    weaknesses: tuple[str, ...]

    def fits(self, inventory: Inventory) -> bool:
        """Whether it is such a stack."""
        return inventory.profile == self.profile and sorted(inventory.weaknesses) == sorted(self.weaknesses)

    def __str__(self) -> str:
        """What is special about it, for a sentence."""
        profile = "" if self.profile == _USUAL else f" (profile {self.profile})"
        return profile + (f" with {', '.join(self.weaknesses)} planted" if self.weaknesses else "")


@contextlib.asynccontextmanager
async def lend(
    standing: LocalStack,
    state: Path,
    kind: Kind,
    host: Host,
    given_up: Callable[[], Awaitable[None]],
    *,
    proxy: str | None = None,
) -> AsyncIterator[Lent]:
    """Lend a stack of exactly this kind for the length of the block.

    A `proxy` of the caller's choice is only had in a stack of our own; without one, what stands there will do.
    `given_up` returns when nobody wants it any more, which ends the wait for it. Raises StackTrouble.
    """
    inventory = await standing.inventory(host)
    if proxy is None and inventory is not None and kind.fits(inventory):
        yield Lent(standing, "using the stack that is up")
        return
    sweep(state, host)
    own = LocalStack(state / "stacks" / f"own-{os.getpid()}")
    began = host.clock.now()
    process = start(own, kind.profile, kind.weaknesses, dies_with_us=True, proxy=proxy or OWN_PROXY)
    try:
        await _unless(given_up, wait_ready(own, process, host))
        yield Lent(own, f"brought up a stack of our own{kind} in {host.clock.now() - began:.1f}s")
    finally:
        try:
            await stop(own, host)
        finally:
            # One that was given up before it could write its pid is known only to us.
            process.terminate()
            process.wait()
            forget(own)


def sweep(state: Path, host: Host) -> None:
    """Forget the folders of own stacks whose run was killed; their supervisors ended with it."""
    for folder in (state / "stacks").glob("own-*"):
        pid = folder.name.removeprefix("own-")
        if pid.isdigit() and host.processes.identify(int(pid)) is None and LocalStack(folder).supervisor(host) is None:
            forget(LocalStack(folder))


async def _unless(given_up: Callable[[], Awaitable[None]], waiting: Awaitable[object]) -> None:
    """Wait, unless nobody wants it any more. Raises StackTrouble."""
    wanted = asyncio.ensure_future(waiting)
    unwanted = asyncio.ensure_future(given_up())
    done, pending = await asyncio.wait((wanted, unwanted), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    if wanted not in done:
        raise StackTrouble("ended before the stack was ready")
    await wanted
