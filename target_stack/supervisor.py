"""Keeps the stack running: starts its parts, asks each until it serves, restarts what dies, tells the harness.

What happens next is decided in `lifecycle`; this shell carries it out. However it ends, by SIGKILL too, nothing
survives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from target_stack.addresses import AddressBook
from target_stack.burdens import Burden, life_s, settings
from target_stack.children import Children, NurseryGone, members, named_parts, signal_group, sweep
from target_stack.config import WITH_STORAGE, Topology, admin_socket
from target_stack.inventory import TargetView, inventory_record, write_atomic
from target_stack.lifecycle import (
    AskedToRestart,
    BecameReady,
    Begin,
    Died,
    Event,
    Hold,
    Lay,
    Life,
    Release,
    Struck,
    Tick,
    step,
)
from target_stack.parts import Component, Part, PreparationFailed, Proxy
from target_stack.port_numbers import is_free
from target_stack.serve import IMPORTED_LATE
from target_stack.workspace import Workspace

START_TIMEOUT_S = 20.0
CHECK_PERIOD_S = 0.03
STOP_TIMEOUT_S = 3.0
DRAIN_TIMEOUT_S = 6.0
"""How long the gateway may take to finish requests in flight; its own limit is 5 s."""


class CannotStart(Exception):
    """The stack did not become ready; the message names the part and holds the end of its log."""


@dataclass
class Seat:
    """A part with its place in the stack: its life, the process that lives it now, and what an earlier one left."""

    name: str
    part: Part
    log: Path
    life: Life = field(default_factory=Life)
    pid: int | None = None
    pids: tuple[int, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    leftover: int | None = None
    problem: str = ""
    last_exit: int | None = None


class Supervisor:
    """One running stack. `proxy` is the name of the seat that is no target."""

    def __init__(
        self,
        *,
        topology: Topology,
        weaknesses: Sequence[str],
        seats: Mapping[str, Seat],
        book: AddressBook,
        children: Children,
        workspace: Workspace,
    ) -> None:
        """Nothing is started yet."""
        self._topology, self._weaknesses = topology, weaknesses
        self._seats, self._book, self._children, self._workspace = seats, book, children, workspace
        self._gateway = seats[topology.of_role("gateway")[0].name]
        self._callers = (self._gateway, *(seats[agent.name] for agent in topology.of_role("agent")))
        self._proxy = next((seat for seat in seats.values() if isinstance(seat.part, Proxy)), None)
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    # What the control API asks for.

    def status(self) -> dict[str, Any]:
        """The inventory record of this moment."""
        return inventory_record(
            self._topology,
            [self._view(target.name) for target in self._topology.targets],
            ready=all(seat.life.phase == "ready" for seat in self._seats.values()),
            weaknesses=self._weaknesses,
            supervisor=self._workspace.control_socket,
            proxy=self._proxy_record(),
            token_file=self._workspace.token_file,
        )

    def _proxy_record(self) -> dict[str, str] | None:
        if self._proxy is None or not isinstance(self._proxy.part, Proxy):
            return None
        return self._proxy.part.record(self._book.direct(self._proxy.name))

    def _view(self, name: str) -> TargetView:
        seat = self._seats[name]
        spec = next(target for target in self._topology.targets if target.name == name)
        life = seat.life
        admin = admin_socket(str(self._workspace.folder(name))) if spec.role == "gateway" else None
        direct, via = self._book.direct(name), self._book.via(name)
        burdens = tuple(each.by for each in life.burdens)
        past = seat.last_exit, life.incarnation
        data = self._workspace.data_record(name)
        paths = {path: (self._book.direct(edge), self._book.via(edge)) for path, edge in spec.kv_paths.items()}
        storage = str(self._workspace.folder(name)) if spec.component in WITH_STORAGE else None
        more = *past, data, seat.parts, paths, storage, self._book.edges(name)
        return TargetView(spec, life.state, life.holds, seat.pids, direct, via, admin, burdens, *more)

    def _paths(self, name: str) -> Mapping[str, str]:
        """The further listeners of a target, by what they are for; none of a part that is no target."""
        return next((target.kv_paths for target in self._topology.targets if target.name == name), {})

    def _target(self, name: str) -> Seat:
        if all(target.name != name for target in self._topology.targets):
            raise KeyError(name)
        return self._seats[name]

    def hold(self, name: str, by: str) -> tuple[str, ...]:
        """Leave a target dead while it is dead. Raises KeyError."""
        self._apply(self._target(name), Hold(by))
        return self._seats[name].life.holds

    def burden(self, name: str, burden: Burden) -> tuple[str, ...]:
        """Lay something on the further lives of a target. Other settings are for our own services, which start anew
        with them at once; ValueError for others. Raises KeyError.
        """
        seat = self._target(name)
        if burden.settings and not isinstance(seat.part, Component):
            raise ValueError(f"{name} is no service of ours, so its settings cannot be changed")
        before = settings(seat.life.burdens)
        self._apply(seat, Lay(burden))
        self._restart_unless(seat, before)
        return tuple(each.by for each in seat.life.burdens)

    def release(self, name: str, by: str) -> tuple[str, ...]:
        """Drop a hold and a burden; without any hold left a dead target is started at once, and one that lives with
        other settings starts anew with its own. Raises KeyError.
        """
        seat = self._target(name)
        before = settings(seat.life.burdens)
        self._apply(seat, Release(by))
        self._restart_unless(seat, before)
        return seat.life.holds

    def _restart_unless(self, seat: Seat, before: Mapping[str, Any]) -> None:
        """End a life whose settings have changed, in good order; the next one has the right ones."""
        if settings(seat.life.burdens) != before:
            self._ask_to_restart(seat)

    def ask_to_stop(self) -> None:
        """Begin the shutdown."""
        self._stopping = True
        self._news.set()

    # Events in, effects out.

    def _apply(self, seat: Seat, event: Event) -> None:
        loop, before = asyncio.get_running_loop(), seat.life
        seat.life, start = step(seat.life, event, loop.time())
        if self._stopping:
            return
        if start:
            self._spawn(self._live(seat, seat.life.incarnation))
        elif seat.life.restart_at not in (None, before.restart_at):
            # A little late, because a timer may fire a nanosecond early and would then find nothing due.
            loop.call_at(seat.life.restart_at + 0.001, self._apply, seat, Tick())
        if seat.life != before:
            self._publish()

    def _publish(self) -> None:
        write_atomic(self._workspace.inventory, self.status())
        self._news.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def on_exit(self, pid: int, status: int) -> None:
        """A child of the nursery ended."""
        for seat in self._seats.values():
            if seat.pid == pid:
                seat.last_exit = status
                seat.problem = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
                self._lost(seat)

    def _lost(self, seat: Seat) -> None:
        pid, seat.pid, seat.pids, seat.parts = seat.pid, None, (), {}
        # A group number is not given out again while a process of the group lives.
        seat.leftover = pid if pid is not None and members(pid) else None
        self._apply(seat, Died(seat.life.incarnation))

    async def _live(self, seat: Seat, incarnation: int) -> None:
        """Start one incarnation and ask it until it serves or is over."""
        try:
            await self._start(seat)
        except NurseryGone:
            return
        except (PreparationFailed, OSError) as problem:
            seat.problem = str(problem)
            self._apply(seat, Died(incarnation))
            return
        while (seat.life.incarnation, seat.life.phase) == (incarnation, "starting"):
            if await seat.part.serves(self._book.direct(seat.name)) and seat.pid is not None:
                seat.pids = seat.part.processes(seat.pid)
                seat.parts = named_parts(seat.pids)
                self._apply(seat, BecameReady(incarnation))
                return
            await asyncio.sleep(CHECK_PERIOD_S)

    async def _start(self, seat: Seat) -> None:
        if seat.leftover is not None:
            await sweep(seat.leftover)
            seat.leftover = None
        for name in (seat.name, *self._paths(seat.name).values()):
            if not is_free(self._book.port(name)):
                self._book.move(name)
                await self._moved(seat)
        if isinstance(seat.part, Component):
            seat.part.changed = settings(seat.life.burdens)
        pid = await self._children.start(await seat.part.job(self._book.port(seat.name)))
        seat.pid, seat.pids = pid, (pid,)
        self._strike_later(seat)
        if self._children.is_running(pid):
            self._publish()
        else:
            self._lost(seat)

    def _strike_later(self, seat: Seat) -> None:
        """Whoever has laid an early death on the seat gets it, unless it is taken away before."""
        left_s, incarnation = life_s(seat.life.burdens), seat.life.incarnation

        def strike() -> None:
            if seat.pid is not None and seat.life.incarnation == incarnation and life_s(seat.life.burdens) is not None:
                signal_group(seat.pid, signal.SIGKILL)
                self._apply(seat, Struck())

        if left_s is not None:
            asyncio.get_running_loop().call_later(left_s, strike)

    async def _moved(self, seat: Seat) -> None:
        """A direct port is another now: tell the proxy, or those who call others where there is none."""
        if self._proxy is None:
            self.restart_callers()
        elif seat is not self._proxy and self._proxy.life.phase == "ready":
            await self._proxy.part.serves(self._book.direct(self._proxy.name))

    def restart_callers(self) -> None:
        """Have gateway and agents, where they run, start again and learn the new addresses."""
        for seat in self._callers:
            self._ask_to_restart(seat)

    def _ask_to_restart(self, seat: Seat) -> None:
        if seat.pid is not None:
            self._apply(seat, AskedToRestart())
            signal_group(seat.pid, seat.part.stop_signal)

    # Beginning and end.

    async def run(self) -> None:
        """Bring all up and keep it up until asked to stop. Raises CannotStart or NurseryGone."""
        loop = asyncio.get_running_loop()
        deadline, began = loop.time() + START_TIMEOUT_S, loop.time()
        others = [seat for seat in self._seats.values() if seat is not self._gateway]
        for seat in others:
            self._apply(seat, Begin())
        # The gateway comes last, so that its first look at its dependencies finds them alive.
        await self._until_ready(others, deadline)
        self._apply(self._gateway, Begin())
        await self._until_ready([self._gateway], deadline)
        if not self._stopping:
            sys.stderr.write(f"{self._topology.name} stack ready after {loop.time() - began:.2f} s\n")
            self._children.teach(IMPORTED_LATE)  # a second of CPU that no restart has to pay
        await self._until(lambda: False)

    async def _until(self, done: Callable[[], bool]) -> None:
        """Wait for `done` or for being asked to stop. Raises NurseryGone."""
        while not done() and not self._stopping:
            if self._children.gone.is_set():
                raise NurseryGone("the nursery ended, and every part with it")
            await self._news.wait()
            self._news.clear()

    async def _until_ready(self, seats: Sequence[Seat], deadline: float) -> None:
        def settled() -> bool:
            return all(seat.life.phase == "ready" for seat in seats) or any(seat.life.hopeless for seat in seats)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await self._until(settled)
        late = [seat for seat in seats if seat.life.phase != "ready"]
        if late and not self._stopping:
            raise CannotStart("\n".join(_explain(seat) for seat in late))

    def wake(self) -> None:
        """Look again: the nursery may be gone."""
        self._news.set()

    async def stop(self) -> None:
        """End every part: the gateway first, so that it can finish what it serves."""
        self._stopping = True
        for task in tuple(self._tasks):
            task.cancel()
        await _end(self._gateway, self._children, DRAIN_TIMEOUT_S)
        others = [seat for seat in self._seats.values() if seat is not self._gateway]
        await asyncio.gather(*(_end(seat, self._children, STOP_TIMEOUT_S) for seat in others))
        # What still runs is a preparation; cut off in the middle it would leave shared memory behind.
        await asyncio.gather(*(_wait(pid, self._children, STOP_TIMEOUT_S) for pid in self._children.running()))
        for seat in self._seats.values():
            seat.part.clean()


async def _wait(pid: int, children: Children, patience_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await children.end_of(pid)


async def _end(seat: Seat, children: Children, patience_s: float) -> None:
    """Ask a part to end, also one that is frozen; kill what is left of it."""
    pid = seat.pid
    if pid is not None and not children.gone.is_set():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, seat.part.stop_signal)
        signal_group(pid, signal.SIGCONT)
        await _wait(pid, children, patience_s)
    for group in (pid, seat.leftover):
        if group is not None:
            await sweep(group)


def _explain(seat: Seat) -> str:
    """Why a part is not ready, with the last lines that it wrote."""
    lines = seat.log.read_text("utf-8", "replace").splitlines()[-8:] if seat.log.exists() else []
    why = f"{seat.name} is {seat.life.state}, not ready" + (f": {seat.problem}" if seat.problem else "")
    return "\n".join([why, *(f"  | {line}" for line in lines)])
