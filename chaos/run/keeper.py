"""The life of the faults of one run: lease before harm, proof of harm, revert whatever happens, proof that it is gone.

    arm ──► inject ──► watch until seen ──► look ──► revert ──► watch until gone
     lease on disk        fault_confirmed   fault_still   lease removed    fault_gone

Every step is a journal record. The keeper knows the verbs of a fault and nothing about its kind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.plan.plan import PlannedFault
from chaos.ports import Host
from chaos.run.lease import Lease
from chaos.run.reverting import pauses, revert_once, until_gone

CONFIRM_WITHIN_S = 3.0
GONE_WITHIN_S = 20.0
LOOK_EVERY_S = 0.05
LOOK_WITHIN_S = 4.0
REVERT_PATIENCE_S = 1.5


_TAKEN_AWAY = "somebody else reverted it: its lease was gone (`brownout recover --live`, or it had run out)"


class Journal(Protocol):
    """The part of the recorder that is needed here."""

    def record(self, kind: str, /, **fields: Any) -> object:
        """Append one record."""
        ...


class Leases(Protocol):
    """The part of the lease store that is needed here."""

    def grant(self, lease: Lease) -> None:
        """Write the undo to disk. Raises OSError."""
        ...

    def holds(self, lease_id: str) -> bool:
        """Whether it is still there: whoever reverts in our place takes it away."""
        ...

    def remove(self, lease_id: str) -> None:
        """Forget a lease whose fault is gone."""
        ...


@dataclass
class _Held:
    planned: PlannedFault
    undo: Undo
    lease_id: str
    injected: bool = False
    reverted: bool = False
    taken_away: bool = False


@dataclass
class FaultKeeper:
    """Keeps the faults of one run. `new_lease` makes the lease value for a fault and its undo."""

    host: Host
    journal: Journal
    leases: Leases
    new_lease: Callable[[PlannedFault, Undo], Lease]
    lost: OSError | None = None
    _held: dict[str, _Held] = field(default_factory=dict)
    _watchers: list[asyncio.Task[None]] = field(default_factory=list)

    async def arm(self, planned: PlannedFault) -> None:
        """Prepare and put the lease on disk. Raises CannotInject, OSError."""
        undo = await planned.fault.prepare(planned.targets, self.host)
        lease = self.new_lease(planned, undo)
        self._held[planned.name] = _Held(planned, undo, lease.id)
        self.leases.grant(lease)
        names = [t.name for t in planned.targets]
        self.journal.record("lease_granted", lease=lease.id, fault=planned.name, targets=names, lease_s=planned.lease_s)

    async def inject(self, planned: PlannedFault, due_t: float) -> None:
        """Harm, and start watching for the proof. Raises CannotInject, also when the lease is no longer on disk."""
        held = self._held[planned.name]
        if not self.leases.holds(held.lease_id):
            raise CannotInject(f"fault {planned.name}: its lease is gone, taken away by `brownout recover --live`")
        held.injected = True
        self.journal.record(
            "fault_injected",
            fault=planned.name,
            fault_kind=planned.fault.kind,
            targets=[t.name for t in planned.targets],
            fidelity=planned.fault.fidelity,
            planned=due_t,
        )
        await planned.fault.inject(planned.targets, held.undo, self.host)
        self._watch(self._until_seen(held))

    def look(self, planned: PlannedFault) -> None:
        """Begin the last look before the revert: is it still there? A slow observer delays nothing."""
        held = self._held.get(planned.name)
        if held is None or not held.injected or held.reverted:
            return
        self._watch(self._last_look(held))

    async def revert(self, planned: PlannedFault, by: str) -> bool:
        """Undo one fault and start watching for it to be gone. False when it could not be undone; never raises."""
        held = self._held.get(planned.name)
        if held is None or held.reverted:
            return True
        held.reverted = True
        if held.injected and not self._still_holds(held):
            held.taken_away = True
            self._sighted("fault_still", held, Sighting(seen=False, what=_TAKEN_AWAY))
        failure = await self._undo(held)
        if failure is not None:
            held.reverted = False
            self._note("fault_failed", fault=planned.name, step="revert", why=failure)
            return False
        self._note("fault_reverted", fault=planned.name, by=by)
        with contextlib.suppress(OSError):  # a lease that stays is reverted once more by the watchdog
            self.leases.remove(held.lease_id)
        if held.injected:
            self._watch(self._until_gone(held))
        return True

    async def revert_all(self, by: str) -> bool:
        """Undo everything still held, all at the same time. False when something could not be undone.

        Faults revert in any order, and a slow revert must not keep the others in force.
        """
        return all(await asyncio.gather(*(self.revert(held.planned, by) for held in [*self._held.values()])))

    def in_force(self) -> bool:
        """Whether anything is armed or harmed that must still be reverted."""
        return any(not held.reverted for held in self._held.values())

    async def settle(self) -> None:
        """Wait until every watcher has seen what it waits for or has given up."""
        await asyncio.gather(*self._watchers)

    def _still_holds(self, held: _Held) -> bool:
        """A disk that does not answer is no sign that somebody reverted."""
        with contextlib.suppress(OSError):
            return self.leases.holds(held.lease_id)
        return True

    async def _undo(self, held: _Held) -> str | None:
        """Try for a while; None when it went well, else what went wrong last."""
        waits = pauses(REVERT_PATIENCE_S)
        while (failure := await revert_once(held.planned.fault, held.undo, self.host)) is not None:
            wait_s = next(waits, None)
            if wait_s is None:
                return failure
            await self._pause(wait_s)
        return None

    async def _last_look(self, held: _Held) -> None:
        """What is seen only after the revert was there before it; what is not seen by then proves nothing.

        One look can fail for the machine's own reasons (a stall in the middle of a measurement), so it is repeated
        while the fault stands.
        """
        sighting = await self._until(held, LOOK_WITHIN_S)
        if held.taken_away and not sighting.seen:
            return  # told already, with who took it
        if held.reverted and not sighting.seen:
            sighting = Sighting(seen=False, what=f"not seen any more before the revert: {sighting.what}")
        self._sighted("fault_still", held, sighting)

    async def _until_seen(self, held: _Held) -> None:
        """Half of the fault's life is soon enough to be seen, and slow faults have slow observers."""
        half_life_s = (held.planned.revert_at - held.planned.inject_at) / 2
        within_s = max(CONFIRM_WITHIN_S, half_life_s)
        sighting = await self._until(held, within_s)
        self._sighted("fault_confirmed", held, sighting)

    async def _until_gone(self, held: _Held) -> None:
        sighting = await until_gone(held.planned.fault, held.undo, self.host, GONE_WITHIN_S)
        self._sighted("fault_gone", held, sighting)

    async def _until(self, held: _Held, within_s: float) -> Sighting:
        """Look again and again until it is seen, the time is up, or it is reverted."""
        give_up = self.host.clock.now() + within_s
        while True:
            left = max(LOOK_EVERY_S, give_up - self.host.clock.now())
            looking = held.planned.fault.confirm(held.planned.targets, held.undo, self.host)
            sighting = await self._bounded(looking, left)
            if sighting.seen or held.reverted or self.host.clock.now() >= give_up:
                return sighting
            await self._pause(LOOK_EVERY_S)

    async def _bounded(self, look: Awaitable[Sighting], within_s: float) -> Sighting:
        """An observer that hangs or breaks has seen nothing, and says so."""
        try:
            async with asyncio.timeout(within_s):
                return await look
        except TimeoutError:
            return Sighting(seen=False, what=f"the observer had no answer within {within_s:.1f}s")
        except CannotInject as reason:
            return Sighting(seen=False, what=str(reason))
        except Exception as failure:  # noqa: BLE001  an observer's failure is evidence, not a crash
            return Sighting(seen=False, what=f"the observer failed: {type(failure).__name__}: {failure}")

    def _note(self, kind: str, **fields: Any) -> None:
        """A record that must not break what is under way: a full disk is remembered in `lost`, and ends the run."""
        try:
            self.journal.record(kind, **fields)
        except OSError as failure:
            self.lost = failure

    def _sighted(self, kind: str, held: _Held, sighting: Sighting) -> None:
        observer = held.planned.fault.observer
        self._note(kind, fault=held.planned.name, seen=sighting.seen, observer=observer, what=sighting.what)

    def _watch(self, watching: Any) -> None:
        self._watchers.append(asyncio.get_running_loop().create_task(watching))

    async def _pause(self, seconds: float) -> None:
        await self.host.clock.sleep_until(self.host.clock.now() + seconds)
