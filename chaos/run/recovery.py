"""Ending what a dead run left: revert each lease, forget it, and look whether the harm is gone.

Everybody who finds a lease does the same, and it is harmless to do it twice or at the same time: reverts are idempotent
and take away only their own marks, and a lease that has vanished was reverted by somebody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from chaos.faults.fault import Fault, Sighting
from chaos.faults.grips.bare import bare
from chaos.ports import Host
from chaos.run.lease import Damaged, Lease, LeaseStore

GONE_WITHIN_S = 5.0
LOOK_EVERY_S = 0.02
LOOK_WITHIN_S = 2.0
REVERT_WITHIN_S = 5.0
AGAIN_EVERY_S = 0.5

Tell = Callable[[str, bool, str], None]
"""Told of every step: `revert` or `gone`, whether it went well, and what was met or seen."""


@dataclass(frozen=True)
class Recovered:
    """What became of one lease. `ok`: reverted. `gone`: an observer saw it; `why` is what it saw, or what failed."""

    lease: str
    run: str
    fault: str
    kind: str
    targets: tuple[str, ...]
    ok: bool
    gone: bool
    why: str
    by: str


def pauses(total_s: float, *, first_s: float = 0.1, longest_s: float = 2.0) -> Iterator[float]:
    """Pauses between tries in seconds: doubling up to `longest_s`, about `total_s` in all."""
    spent_s, pause_s = 0.0, first_s
    while spent_s + pause_s <= total_s + 1e-9:
        yield pause_s
        spent_s += pause_s
        pause_s = min(2 * pause_s, longest_s)


async def recover(
    store: LeaseStore,
    host: Host,
    *,
    faults_by_kind: Mapping[str, type[Fault]],
    only_run: str | None = None,
    only_stack: str | None = None,
    by: str = "recover",
    patience_s: float = 1.5,
) -> tuple[Recovered, ...]:
    """Revert every lease (of one run, of one stack), all at the same time, each with five tries in `patience_s`.

    A lease file is removed only after its revert went well. Leases of another boot are reverted like all others: their
    processes are gone, what they wrote elsewhere may not be. Damaged files are reported as not reverted.
    """
    stored = store.list(run=only_run, stack=only_stack)
    undone = [revert_lease(lease, store, host, faults_by_kind, by=by, patience_s=patience_s) for lease in stored.leases]
    return (*await asyncio.gather(*undone), *(_unreadable(damaged, by) for damaged in stored.damaged))


async def revert_lease(
    lease: Lease,
    store: LeaseStore,
    host: Host,
    faults_by_kind: Mapping[str, type[Fault]],
    *,
    by: str,
    patience_s: float,
    tell: Tell = lambda _step, _ok, _why: None,
) -> Recovered:
    """Revert one lease with growing pauses for up to `patience_s`, forget it, and look whether the harm is gone."""
    kind = faults_by_kind.get(lease.kind)
    if kind is None:
        why = f"this version knows no fault {lease.kind}; run `brownout recover` of the version that injected it"
        tell("revert", False, why)
        return _result(lease, by, ok=False, gone=False, why=why)
    fault, waits = bare(kind), pauses(patience_s)
    while store.holds(lease.id):
        failure = await _tried(fault, lease, host)
        if failure is None:
            return await _forget(fault, lease, store, host, by=by, tell=tell)
        tell("revert", False, failure)
        wait_s = next(waits, None)
        if wait_s is None:
            return _result(lease, by, ok=False, gone=False, why=failure)
        await host.clock.sleep_until(host.clock.now() + wait_s)
    return _result(lease, by, ok=True, gone=True, why="reverted by somebody else meanwhile")


async def _forget(fault: Fault, lease: Lease, store: LeaseStore, host: Host, *, by: str, tell: Tell) -> Recovered:
    """The revert went well: remove the lease, then look."""
    store.remove(lease.id)
    tell("revert", True, "")
    sighting = await _until_gone(fault, lease, host)
    tell("gone", sighting.seen, sighting.what)
    return _result(lease, by, ok=True, gone=sighting.seen, why=sighting.what)


async def _tried(fault: Fault, lease: Lease, host: Host) -> str | None:
    """One try; None when it went well, else what went wrong."""
    try:
        async with asyncio.timeout(REVERT_WITHIN_S):
            await fault.revert(lease.undo, host)
    except TimeoutError:
        return f"the revert did not end within {REVERT_WITHIN_S:.0f}s"
    except Exception as failure:  # noqa: BLE001  whatever is wrong with one lease, it is told and the others are reverted
        return str(failure) or type(failure).__name__
    return None


async def _until_gone(fault: Fault, lease: Lease, host: Host) -> Sighting:
    """Look until the harm is seen to be gone; while it is not, revert again.

    A call that the dead harness had under way may reach its server after our revert; the second revert takes it back.
    """
    now = host.clock.now()
    give_up, again = now + GONE_WITHIN_S, now + AGAIN_EVERY_S
    while True:
        sighting = await _look(fault, lease, host)
        now = host.clock.now()
        if sighting.seen or now >= give_up:
            return sighting
        if now >= again:
            again = now + AGAIN_EVERY_S
            await _tried(fault, lease, host)
        await host.clock.sleep_until(host.clock.now() + LOOK_EVERY_S)


async def _look(fault: Fault, lease: Lease, host: Host) -> Sighting:
    try:
        async with asyncio.timeout(LOOK_WITHIN_S):
            return await fault.confirm_gone((), lease.undo, host)
    except TimeoutError:
        return Sighting(seen=False, what=f"the observer had no answer within {LOOK_WITHIN_S:.0f}s")
    except Exception as failure:  # noqa: BLE001  an observer that breaks has seen nothing, and says so
        return Sighting(seen=False, what=f"the observer failed: {failure!r}")


def _result(lease: Lease, by: str, *, ok: bool, gone: bool, why: str) -> Recovered:
    return Recovered(lease.id, lease.run, lease.fault, lease.kind, lease.targets, ok, gone, why, by)


def _unreadable(damaged: Damaged, by: str) -> Recovered:
    why = (
        f"lease file {damaged.path} cannot be read ({damaged.why}); look into it for what to undo, restart the stack "
        "(`brownout down`, `brownout up`), then remove the file"
    )
    return Recovered(damaged.path.stem, "", damaged.path.stem, "", (), ok=False, gone=False, why=why, by=by)
