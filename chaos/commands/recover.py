"""`brownout recover` and `brownout stop`: ending harm and runs from another terminal."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

from chaos.adapters.host import real_host
from chaos.commands.front import Front
from chaos.faults.catalog import by_kind
from chaos.paths import state_root
from chaos.ports import Host, ProcessId
from chaos.run.lease import Lease
from chaos.run.lock import Holder, live_holder
from chaos.run.recovery import recover
from chaos.stacks.local import LocalStack
from chaos.verdict.outcome import BAD_INPUT, HARNESS_ERROR, NOT_REVERTED, UPHELD
from chaos.wiring import lease_store

STOP_WITHIN_S = 30.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the commands."""
    again = commands.add_parser("recover", help="revert whatever a dead run left; safe at any time, safe to repeat")
    again.add_argument("--live", action="store_true", help="also what a living run holds, which makes it inconclusive")
    again.add_argument("--json", action="store_true", help="for programs")
    again.set_defaults(run=_recover)
    stop = commands.add_parser("stop", help="end the run that is going on; it reverts and writes its report")
    stop.set_defaults(run=_stop)


def _recover(arguments: argparse.Namespace, front: Front) -> int:
    """0 when no dead run left anything, 4 when something could not be reverted.

    The faults of a living run are its own to revert: taking a lease away just before its inject would leave the harm
    without an undo on disk. `brownout stop` ends such a run; `--live` takes its faults away and lets it go on.
    """
    return asyncio.run(_recover_all(arguments, front))


async def _recover_all(arguments: argparse.Namespace, front: Front) -> int:
    async with real_host() as host:
        store = lease_store(state_root(front.environment))
        held = [] if arguments.live else [x for x in store.list().leases if is_live(x, host)]
        results = await recover(store, host, faults_by_kind=by_kind, spared=lambda lease: lease in held)
    for lease in held:
        front.warn(f"in force: {lease.fault}, by run {lease.run}, which is going on; end it with `brownout stop`")
    if arguments.json:
        told = [{"lease": r.lease, "fault": r.fault, "ok": r.ok, "why": r.why} for r in results]
        front.say_json({"version": 1, "recovered": told, "in_force": [lease.id for lease in held]})
    else:
        for result in results:
            front.say(
                f"{'reverted' if result.ok else 'NOT reverted'}: {result.fault}"
                + (f" ({result.why})" if result.why else "")
            )
        if not results:
            front.say("nothing to revert" if not held else "nothing that a dead run left")
    return UPHELD if all(r.ok for r in results) else NOT_REVERTED


def is_live(lease: Lease, host: Host) -> bool:
    """Whether the run that injected it lives and may still hold it: the lock of its stack names it."""
    holder = live_holder(LocalStack(Path(lease.stack)).lock, host.processes)
    ended = lease.ended(host.clock.now(), host.clock.boot_id())
    return holder is not None and holder.run == lease.run and not ended


def _stop(arguments: argparse.Namespace, front: Front) -> int:  # noqa: ARG001  every command has this shape
    """0 when the run ended, 64 when there was none."""
    return asyncio.run(_stop_run(front))


async def _stop_run(front: Front) -> int:
    stacks = state_root(front.environment) / "stacks"
    async with real_host() as host:
        folders = sorted(p for p in stacks.glob("*") if p.is_dir()) if stacks.is_dir() else []
        holders = [h for f in folders if (h := live_holder(LocalStack(f).lock, host.processes))]
        if not holders:
            front.warn("no run is going on")
            return BAD_INPUT
        ended = [await _end(holder, host, front) for holder in holders]
    return UPHELD if all(ended) else HARNESS_ERROR


async def _end(holder: Holder, host: Host, front: Front) -> bool:
    process = ProcessId(holder.pid, holder.start_ticks)
    host.processes.signal(process, signal.SIGTERM)
    give_up = host.clock.now() + STOP_WITHIN_S
    while host.processes.state(process) is not None:
        if host.clock.now() > give_up:
            front.warn(
                f"run {holder.run} (pid {holder.pid}) does not end; `kill -9 {holder.pid}`, its watchdog reverts"
            )
            return False
        await host.clock.sleep_until(host.clock.now() + 0.05)
    front.say(f"run {holder.run} has ended; its report is in {holder.run_dir}")
    return True
