"""The life of the faults of one run: lease before harm, proof of harm, revert whatever happens, proof that it is gone.

    arm ──► inject ──► watch until seen ──► look ──► revert ──► watch until gone
     lease on disk        fault_confirmed   fault_still   lease removed    fault_gone

Every step is a journal record. The keeper knows the verbs of a fault and nothing about its kind. In an abort the
reverts come first: looks under way are cut off, and nobody looks again before the last revert has returned.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.plan.plan import PlannedFault
from chaos.ports import Host
from chaos.run.lease import Lease
from chaos.run.looking import Look, look_until
from chaos.run.reverting import pauses, revert_once, until_gone

CONFIRM_WITHIN_S = 3.0
GONE_WITHIN_S = 20.0
LOOK_WITHIN_S = 4.0
REVERT_PATIENCE_S = 1.5

_CUT_OFF = "nobody saw it before the run was ended"
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
    """One fault. `ending` is its revert, from the moment in which that begins; `reverted` is true from then on, unless
    it fails. `looks` are those under way, `told` those that have an answer, by the kind of record.
    """

    planned: PlannedFault
    undo: Undo
    lease_id: str
    injected: bool = False
    reverted: bool = False
    taken_away: bool = False
    ending: asyncio.Task[bool] | None = None
    looks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def over(self) -> bool:
        """Whether it is reverted, and the revert has returned."""
        return self.reverted and self.ending is not None and self.ending.done()


@dataclass
class FaultKeeper:
    """Keeps the faults of one run. `new_lease` makes the lease value for a fault and its undo."""

    host: Host
    journal: Journal
    leases: Leases
    new_lease: Callable[[PlannedFault, Undo], Lease]
    lost: OSError | None = None
    _held: dict[str, _Held] = field(default_factory=dict)
    _aborting: bool = False

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
            fidelity=held.undo.get("fidelity", planned.fault.fidelity),
            planned=due_t,
        )
        await planned.fault.inject(planned.targets, held.undo, self.host)
        self._begin(held, "fault_confirmed", self._until_seen(held))

    def look(self, planned: PlannedFault) -> None:
        """Begin the last look before the revert: is it still there? A slow observer delays nothing."""
        held = self._held.get(planned.name)
        if held is None or not held.injected or held.reverted:
            return
        self._begin(held, "fault_still", self._last_look(held))

    async def revert(self, planned: PlannedFault, by: str) -> bool:
        """Undo one fault and start watching for it to be gone. False when it could not be undone; never raises.

        A caller that is cut off leaves the revert going on, and the next one waits for the same.
        """
        held = self._held.get(planned.name)
        if held is None:
            return True
        return await asyncio.shield(self._ending(held, by))

    async def revert_all(self, by: str) -> bool:
        """Undo everything still held, all at the same time. False when something could not be undone.

        Faults revert in any order, and neither a slow revert nor an observer must keep the others in force.
        """
        if not self.in_force():
            return True
        self._aborting, everything = True, [*self._held.values()]
        looks = [look for held in everything for look in held.looks.values()]
        endings = [self._ending(held, by) for held in everything]
        for look in looks:
            look.cancel()
        reverted = await asyncio.gather(*endings)
        await asyncio.gather(*looks, return_exceptions=True)
        self._aborting = False
        for held in everything:
            self._take_up(held)
        return all(reverted)

    def in_force(self) -> bool:
        """Whether anything is armed or harmed that must still be reverted."""
        return any(not held.over() for held in self._held.values())

    async def settle(self) -> None:
        """Wait until every look has seen what it waits for or has given up."""
        looks = [look for held in self._held.values() for look in held.looks.values()]
        if looks:
            await asyncio.wait(looks)  # unlike `gather`, it leaves them alone when whoever waits is cut off
        for look in looks:
            look.result()

    def note(self, kind: str, **fields: Any) -> None:
        """A record that must not break what is under way: a full disk is remembered in `lost`, and ends the run."""
        try:
            self.journal.record(kind, **fields)
        except OSError as failure:
            self.lost = failure

    def _ending(self, held: _Held, by: str) -> asyncio.Task[bool]:
        if held.ending is None or not held.reverted:
            held.reverted = True
            held.ending = asyncio.get_running_loop().create_task(self._end(held, by))
        return held.ending

    async def _end(self, held: _Held, by: str) -> bool:
        began = self.host.clock.now()
        if held.injected and not self._still_holds(held):
            held.taken_away = True
            self._sighted("fault_still", held, Look(Sighting(seen=False, what=_TAKEN_AWAY), 0.0))
        failure = await self._undo(held)
        if failure is not None:
            held.reverted = False
            self.note("fault_failed", fault=held.planned.name, step="revert", why=failure)
            return False
        self.note("fault_reverted", fault=held.planned.name, by=by, took_s=round(self.host.clock.now() - began, 6))
        if not self._aborting:  # else its lease waits too: milliseconds of disk that would keep the others in force
            self._let_go(held)
        return True

    def _let_go(self, held: _Held) -> None:
        """It is reverted: its lease goes, and somebody looks whether it is gone."""
        with contextlib.suppress(OSError):  # a lease that stays is reverted once more by the watchdog
            self.leases.remove(held.lease_id)
        if held.injected and "fault_gone" not in held.told:
            self._begin(held, "fault_gone", self._until_gone(held))

    def _take_up(self, held: _Held) -> None:
        """After an abort: tell which looks it cut off before they saw anything, and look whether the fault is gone."""
        cut_off = {kind for kind, look in held.looks.items() if look.cancelled()}
        held.looks.clear()
        for kind in sorted(cut_off - {"fault_gone"}):
            self._sighted(kind, held, Look(Sighting(seen=False, what=_CUT_OFF), 0.0))
        if held.reverted:
            self._let_go(held)

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
        look = await self._until_over(held, LOOK_WITHIN_S)
        if held.taken_away and not look.sighting.seen:
            return  # told already, with who took it
        if held.reverted and not look.sighting.seen:
            blind = Sighting(seen=False, what=f"not seen any more before the revert: {look.sighting.what}")
            look = Look(blind, look.took_s)
        self._sighted("fault_still", held, look)

    async def _until_seen(self, held: _Held) -> None:
        """Goes on for half of the fault's life: that it is seen too late to count says more than that it is not."""
        half_life_s = (held.planned.revert_at - held.planned.inject_at) / 2
        self._sighted("fault_confirmed", held, await self._until_over(held, max(CONFIRM_WITHIN_S, half_life_s)))

    async def _until_over(self, held: _Held, within_s: float) -> Look:
        return await look_until(held.planned, held.undo, self.host, within_s=within_s, over=lambda: held.reverted)

    async def _until_gone(self, held: _Held) -> None:
        began = self.host.clock.now()
        sighting = await until_gone(held.planned.fault, held.undo, self.host, GONE_WITHIN_S)
        self._sighted("fault_gone", held, Look(sighting, self.host.clock.now() - began))

    def _sighted(self, kind: str, held: _Held, look: Look) -> None:
        held.told.add(kind)
        self.note(
            kind,
            fault=held.planned.name,
            seen=look.sighting.seen,
            observer=held.planned.fault.observer,
            what=look.sighting.what,
            took_s=round(look.took_s, 6),
        )

    def _begin(self, held: _Held, kind: str, look: Coroutine[Any, Any, None]) -> None:
        held.looks[kind] = asyncio.get_running_loop().create_task(look)

    async def _pause(self, seconds: float) -> None:
        await self.host.clock.sleep_until(self.host.clock.now() + seconds)
