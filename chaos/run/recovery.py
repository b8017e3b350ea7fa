"""Ending what a dead run left: revert each lease, forget it, and look whether the harm is gone.

Everybody who finds a lease does the same, and it is harmless to do it twice or at the same time: reverts are idempotent
and take away only their own marks, and a lease that has vanished was reverted by somebody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaos.faults.fault import Fault
from chaos.faults.grips.bare import bare
from chaos.ports import Host
from chaos.run.lease import Damaged, Lease, LeaseStore
from chaos.run.reverting import pauses, revert_once, until_gone

GONE_WITHIN_S = 5.0

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


async def recover(
    store: LeaseStore,
    host: Host,
    *,
    faults_by_kind: Mapping[str, type[Fault]],
    only_run: str | None = None,
    only_stack: str | None = None,
    spared: Callable[[Lease], bool] = lambda _lease: False,
    by: str = "recover",
    patience_s: float = 1.5,
) -> tuple[Recovered, ...]:
    """Revert every lease (of one run, of one stack), all at the same time, each with five tries in `patience_s`.

    A lease file is removed only after its revert went well. Leases of another boot are reverted like all others: their
    processes are gone, what they wrote elsewhere may not be. Damaged files are reported as not reverted. A `spared`
    lease is left alone.
    """
    stored = store.list(run=only_run, stack=only_stack)
    undone = [
        revert_lease(lease, store, host, faults_by_kind, by=by, patience_s=patience_s)
        for lease in stored.leases
        if not spared(lease)
    ]
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
        failure = await revert_once(fault, lease.undo, host)
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
    try:
        store.remove(lease.id)
    except OSError as failure:  # the others must still be reverted
        why = f"reverted, but its lease cannot be removed: {failure}"
        tell("revert", False, why)
        return _result(lease, by, ok=False, gone=False, why=why)
    tell("revert", True, "")
    sighting = await until_gone(fault, lease.undo, host, GONE_WITHIN_S)
    tell("gone", sighting.seen, sighting.what)
    return _result(lease, by, ok=True, gone=sighting.seen, why=sighting.what)


def _result(lease: Lease, by: str, *, ok: bool, gone: bool, why: str) -> Recovered:
    return Recovered(lease.id, lease.run, lease.fault, lease.kind, lease.targets, ok, gone, why, by)


def _unreadable(damaged: Damaged, by: str) -> Recovered:
    why = (
        f"lease file {damaged.path} cannot be read ({damaged.why}); look into it for what to undo, restart the stack "
        "(`brownout down`, `brownout up`), then remove the file"
    )
    return Recovered(damaged.path.stem, "", damaged.path.stem, "", (), ok=False, gone=False, why=why, by=by)
