"""The promises of `Fault` and `Probe` as functions: whoever writes a new one calls them in a test.

    async def main() -> None:
        world = InMemoryHost()
        await check_fault(MyFault(), (world.add_target("engine-a"),), world.host)

    run_virtual(main)

They work on any host; in memory and in virtual time they take no time at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import math
from collections.abc import Awaitable, Callable
from pathlib import Path

from chaos.faults.fault import Fault, Sighting, Undo
from chaos.faults.grips.bare import bare
from chaos.faults.grips.sightings import look_until_seen
from chaos.inventory import Target
from chaos.ports import Host
from chaos.probes.probe import Probe
from chaos.testing.host import InMemoryHost
from chaos.testing.recording import Recording

Targets = tuple[Target, ...]


class ContractBroken(AssertionError):
    """A fault or probe does not keep a promise; the message names the promise."""


async def check_fault(
    fault: Fault, targets: Targets, host: Host, *, within_s: float = 5.0, lasting: bool = True
) -> None:
    """Hold a fault to its contract. Raises ContractBroken.

    `within_s` is how long a harm may take to show or to vanish. `lasting=False` is for harm that ends by itself and
    whose trace stays (a killed process stays dead while its successor serves): `confirm` may stay true at the end.
    """
    checker = _FaultCheck(fault, targets, host, within_s, lasting)
    _demand(fault.problems(targets) == (), f"problems() finds none with these targets: {fault.problems(targets)}")
    await checker.undo_is_complete_and_preparing_changes_nothing()
    await checker.revert_without_inject_is_safe()
    injecting, reverting = await checker.harm_is_seen_and_goes()
    for cut_at in range(1, injecting + 1):
        await checker.inject_is_cut_off(cut_at, after_effect=False)
        await checker.inject_is_cut_off(cut_at, after_effect=True)
    for cut_at in range(1, reverting + 1):
        await checker.revert_is_cut_off(cut_at, after_effect=False)
        await checker.revert_is_cut_off(cut_at, after_effect=True)


async def check_negative_control(fault: Fault, targets: Targets, host: Host, *, within_s: float = 5.0) -> None:
    """Watch a fault that is prepared and never injected: its observer must not confirm it. Raises ContractBroken."""
    undo = await fault.prepare(targets, host)
    seen = await look_until_seen(lambda: fault.confirm(targets, undo, host), host.clock, within_s=within_s)
    _demand(not seen.seen, f"confirm() stays false when nothing was injected: {seen.what}")


async def check_probe(probe: Probe, target: Target, host: Host) -> None:
    """Hold a probe to its contract where it can read and where nothing answers. Raises ContractBroken."""
    _demand(probe.applies_to(target) is True, "applies_to() is true for the target of the check")
    recording = Recording(host)
    reading = await probe.read(target, recording.host)
    _demand(recording.changes == (), f"read() changes nothing: {recording.changes}")
    _demand(reading.error is None, f"read() of a target that works has no error: {reading.error}")
    _demand((reading.probe, reading.target) == (probe.kind, target.name), "a reading names its probe and its target")
    odd = [series for series, value in reading.values.items() if not math.isfinite(value)]
    _demand(not odd, f"values are finite numbers: {odd}")
    json.dumps([dict(reading.values), [dict(event) for event in reading.events]])
    dead = dataclasses.replace(InMemoryHost().host, clock=host.clock)
    try:
        blind = await probe.read(target, dead)
    except Exception as error:
        raise ContractBroken("read() never raises; what it could not read is a reading with an error") from error
    _demand(bool(blind.error), "a reading of a target that does not answer says so in `error`")


@dataclasses.dataclass(frozen=True)
class _FaultCheck:
    fault: Fault
    targets: Targets
    host: Host
    within_s: float
    lasting: bool

    async def undo_is_complete_and_preparing_changes_nothing(self) -> None:
        recording = Recording(self.host)
        undo = await self.fault.prepare(self.targets, recording.host)
        _demand(recording.changes == (), f"prepare() changes nothing: {recording.changes}")
        _demand(json.loads(json.dumps(undo)) == undo, f"undo survives a round trip through JSON: {undo}")
        before = await self.fault.confirm(self.targets, undo, recording.host)
        _demand(not before.seen, f"confirm() is false before inject(): {before.what}")
        _demand(recording.changes == (), f"confirm() changes nothing: {recording.changes}")

    async def revert_without_inject_is_safe(self) -> None:
        undo = await self._prepared()
        await self.fault.revert(undo, self.host)
        await self._is_gone(undo, "after a revert() without an inject()")

    async def harm_is_seen_and_goes(self) -> tuple[int, int]:
        """Also counts the calls of an uncut inject and of an uncut revert. A broken promise leaves no harm behind."""
        undo = await self._prepared()
        try:
            return await self._live(undo)
        except BaseException:
            with contextlib.suppress(Exception):  # the broken promise is what must be told
                await self.fault.revert(undo, self.host)
            raise

    async def _live(self, undo: Undo) -> tuple[int, int]:
        recording = Recording(self.host)
        await self.fault.inject(self.targets, undo, recording.host)
        calls, changed = len(recording.log), recording.changes
        seen = await self._patiently(lambda: self.fault.confirm(self.targets, undo, recording.host))
        _demand(seen.seen, f"confirm() is true after inject(): {seen.what}")
        _demand(recording.changes == changed, "confirm() changes nothing while the harm is there")
        gone = await self.fault.confirm_gone(self.targets, undo, recording.host)
        _demand(not gone.seen or not self.lasting, f"confirm_gone() is false while the harm is there: {gone.what}")
        _demand(recording.changes == changed, "confirm_gone() changes nothing")
        reverting = Recording(self.host)
        await self.fault.revert(undo, reverting.host)
        await self._is_gone(undo, "after revert()")
        await self.fault.revert(undo, self.host)
        await self._is_gone(undo, "after a second revert()")
        return calls, len(reverting.log)

    async def inject_is_cut_off(self, cut_at: int, *, after_effect: bool) -> None:
        """Die at one call of inject."""
        undo, cut = await self._prepared(), Recording(self.host, cut_at=cut_at, cut_after_effect=after_effect)
        with contextlib.suppress(asyncio.CancelledError, BaseExceptionGroup):
            await self.fault.inject(self.targets, undo, cut.host)
        await self._heir_ends(undo, cut, "inject()")

    async def revert_is_cut_off(self, cut_at: int, *, after_effect: bool) -> None:
        """Die at one call of revert, when the harm is in force."""
        undo, cut = await self._prepared(), Recording(self.host, cut_at=cut_at, cut_after_effect=after_effect)
        await self.fault.inject(self.targets, undo, self.host)
        await self._patiently(lambda: self.fault.confirm(self.targets, undo, self.host))
        with contextlib.suppress(asyncio.CancelledError, BaseExceptionGroup):
            await self.fault.revert(undo, cut.host)
        await self._heir_ends(undo, cut, "revert()")

    async def _heir_ends(self, undo: Undo, cut: Recording, verb: str) -> None:
        """Somebody else reverts from kind and undo alone, as a watchdog does."""
        heir, reverting = bare(type(self.fault)), Recording(self.host)
        await heir.revert(undo, reverting.host)
        where = f"{verb} died {'after' if cut.cut_after_effect else 'before'} call {cut.cut_at} ({cut.log[-1].what})"
        _demand(_swept(cut.torn, reverting), f"revert() sweeps the drafts of a file in whose writing {where}")
        gone = await self._patiently(lambda: heir.confirm_gone((), undo, self.host))
        _demand(gone.seen, f"confirm_gone() without settings and targets is true when {where}: {gone.what}")
        await self._is_gone(undo, f"when {where} and revert() followed")

    async def _prepared(self) -> Undo:
        undo: Undo = json.loads(json.dumps(await self.fault.prepare(self.targets, self.host)))
        return undo

    async def _is_gone(self, undo: Undo, when: str) -> None:
        gone = await self._patiently(lambda: self.fault.confirm_gone(self.targets, undo, self.host))
        _demand(gone.seen, f"confirm_gone() is true {when}: {gone.what}")
        still = await self.fault.confirm(self.targets, undo, self.host)
        _demand(not still.seen or not self.lasting, f"confirm() is false {when}: {still.what}")

    async def _patiently(self, look: Callable[[], Awaitable[Sighting]]) -> Sighting:
        return await look_until_seen(look, self.host.clock, within_s=self.within_s)


def _swept(torn: Path | None, reverting: Recording) -> bool:
    """Whether the draft that a killed writer leaves of a file was removed (`Files.sweep`)."""
    return torn is None or any(
        torn.parent == folder and torn.name.startswith(prefix) for folder, prefix in reverting.swept
    )


def _demand(kept: object, promise: str) -> None:
    if not kept:
        raise ContractBroken(promise)
