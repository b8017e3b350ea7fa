"""One experiment on one stack, from a plan to a run directory full of evidence.

    run directory ─► lock ─► leftovers gone ─► watchdog, journal ─► run ─► seal

Everything that decides is in the stages; this joins them with real adapters for the length of one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaos import environment
from chaos.adapters.entropy import SeededEntropy
from chaos.faults.catalog import by_kind
from chaos.faults.fault import Undo
from chaos.inventory import Inventory
from chaos.journal.live import LiveWindow
from chaos.journal.record import JOURNAL_VERSION, ReadingRow, Sample
from chaos.journal.recorder import Recorder
from chaos.journal.samples import RowWriter, keep_flushed, reading_writer, sample_writer
from chaos.load.prompts import load_prompts, prompts_dirs
from chaos.load.schedule import LoadPlan, plan_load
from chaos.paths import project_root
from chaos.plan.make import to_json as plan_json
from chaos.plan.plan import Plan, PlannedFault
from chaos.ports import Host
from chaos.probes.catalog import new_probes
from chaos.run.keeper import FaultKeeper
from chaos.run.lease import Lease
from chaos.run.lock import hold
from chaos.run.recovery import recover
from chaos.run.runner import Crew, Finish, Trip
from chaos.run.runner import run as carry_out
from chaos.run.stop import ERROR, Stop
from chaos.run.traffic import DrivenLoad, users_are_served
from chaos.run.watch import ProbeWatch
from chaos.run.watchdog_process import WatchdogProcess
from chaos.stacks.local import LocalStack
from chaos.verdict.live import check_guard
from chaos.wiring import lease_store

Tell = Callable[[str, Mapping[str, Any]], None]
"""Hears every journal record as (kind, fields), and every sample as ("sample", {"sample": ...})."""

LEFTOVERS_WITHIN_S = 5.0


@dataclass(frozen=True)
class Setting:
    """Where a run happens. `out` is the folder of run directories, `state` the harness's state folder."""

    stack: LocalStack
    inventory: Inventory
    host: Host
    out: Path
    state: Path


class LeftBehind(Exception):
    """A dead run left a fault that could not be reverted; nothing new may be injected on top of it."""


async def conduct(plan: Plan, setting: Setting, stop: Stop, tell: Tell) -> tuple[Path, Finish]:
    """Carry out a plan under the lock of its stack. Raises StackBusy, LeftBehind, OSError, PromptError."""
    host = setting.host
    run_id = _run_id(host, plan)
    run_dir = setting.out / plan.experiment.name / run_id
    with hold(setting.stack.lock, run_id, run_dir, host.processes):
        await _clear_leftovers(setting)
        run_dir.mkdir(parents=True)
        _write_inputs(run_dir, plan, setting.inventory)
        return run_dir, await _run(plan, setting, run_dir, run_id, stop, tell)


def _run_id(host: Host, plan: Plan) -> str:
    stamp = datetime.fromtimestamp(host.clock.wall(), UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    return f"{stamp}-{SeededEntropy(plan.seed).stream(f'{os.getpid()}/{host.clock.now()}').randrange(16**4):04x}"


def _write_inputs(run_dir: Path, plan: Plan, inventory: Inventory) -> None:
    project = project_root(Path(plan.experiment.path))
    (run_dir / "experiment.yaml").write_text(plan.experiment.text)
    for name, value in (
        ("plan.json", plan_json(plan)),
        ("inventory.json", inventory.to_json()),
        ("environment.json", environment.describe(project)),
    ):
        (run_dir / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


async def _clear_leftovers(setting: Setting) -> None:
    """A run that died may still be being cleaned up by its watchdog; wait for it, then do it ourselves."""
    host, store = setting.host, lease_store(setting.state)
    give_up = host.clock.now() + LEFTOVERS_WITHIN_S
    stack = setting.inventory.stack
    while (left := store.list(stack=stack)).leases or left.damaged:
        if host.clock.now() < give_up:
            await host.clock.sleep_until(host.clock.now() + 0.1)
            continue
        results = await recover(store, host, faults_by_kind=by_kind, only_stack=stack)
        stuck = [r for r in results if not r.ok]
        if stuck:
            raise LeftBehind(f"fault `{stuck[0].fault}` of a dead run could not be reverted: {stuck[0].why}")


async def _run(plan: Plan, setting: Setting, run_dir: Path, run_id: str, stop: Stop, tell: Tell) -> Finish:
    host = setting.host
    loads = _loads(plan)
    async with _evidence(run_dir, host, tell, lambda why: stop.request(ERROR, why)) as evidence:
        evidence.journal.record("run_started", **_started(plan, setting, run_id, evidence.origin, host))
        watchdog = WatchdogProcess(setting.state / "leases", run_id, run_dir / "watchdog.jsonl")
        await watchdog.start()
        try:
            return await carry_out(plan, _crew(plan, setting, run_dir, run_id, evidence, loads, watchdog, stop))
        finally:
            await watchdog.done()


def _loads(plan: Plan) -> tuple[LoadPlan, ...]:
    entropy = SeededEntropy(plan.seed)
    folders = prompts_dirs(Path(plan.experiment.path))
    return tuple(
        plan_load(load, load_prompts(load.prompts, folders), plan.seed, entropy, plan.load_end)
        for load in plan.experiment.loads
    )


def _started(plan: Plan, setting: Setting, run_id: str, origin: float, host: Host) -> dict[str, Any]:
    return {
        "version": JOURNAL_VERSION,
        "run": run_id,
        "experiment": plan.experiment.name,
        "fingerprint": plan.fingerprint,
        "seed": plan.seed,
        "profile": plan.profile,
        "stack": plan.stack,
        "weaknesses": list(setting.inventory.weaknesses),
        "wall": host.clock.wall(),
        "boot_id": host.clock.boot_id(),
        "pid": os.getpid(),
        "origin": origin,
    }


@dataclass(frozen=True)
class _Evidence:
    """The open files of one run."""

    journal: _ToldJournal
    samples: RowWriter[Sample]
    readings: RowWriter[ReadingRow]
    live: LiveWindow
    origin: float
    tell: Tell

    def sample(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.live.feed(sample)
        self.tell("sample", {"sample": sample})


@dataclass(frozen=True)
class _ToldJournal:
    """A recorder whose records are also told to whoever watches."""

    recorder: Recorder
    tell: Tell

    def record(self, kind: str, /, **fields: Any) -> object:
        record = self.recorder.record(kind, **fields)
        self.tell(kind, {"t": record.t, **fields})
        return record


@contextlib.asynccontextmanager
async def _evidence(
    run_dir: Path, host: Host, tell: Tell, on_loss: Callable[[str], object]
) -> AsyncIterator[_Evidence]:
    """Open all three files; on the way out write what waits and seal. Raises OSError only from opening."""
    origin = host.clock.now()
    recorder = Recorder(run_dir, host.clock, origin)
    samples, readings = sample_writer(run_dir), reading_writer(run_dir)
    keeping = asyncio.create_task(keep_flushed(host.clock, (samples.flush, readings.flush)))
    keeping.add_done_callback(lambda task: _heard(task, on_loss))
    try:
        yield _Evidence(_ToldJournal(recorder, tell), samples, readings, LiveWindow(), origin, tell)
    finally:
        keeping.cancel()
        # A full disk has ended the run as failed already; what is missing shows as an unsealed journal.
        for close in (samples.close, readings.close, lambda: _seal(recorder, samples, readings), recorder.close):
            with contextlib.suppress(OSError):
                close()


def _seal(recorder: Recorder, samples: RowWriter[Sample], readings: RowWriter[ReadingRow]) -> None:
    recorder.seal(samples=samples.count, readings=readings.count)


def _heard(flushing: asyncio.Task[None], on_loss: Callable[[str], object]) -> None:
    """Rows that cannot be written end the run: a verdict on half of the evidence would be a lie."""
    if not flushing.cancelled() and (failure := flushing.exception()):
        on_loss(f"{type(failure).__name__}: {failure}")


def _crew(
    plan: Plan,
    setting: Setting,
    run_dir: Path,
    run_id: str,
    evidence: _Evidence,
    loads: tuple[LoadPlan, ...],
    watchdog: WatchdogProcess,
    stop: Stop,
) -> Crew:
    host, origin = setting.host, evidence.origin
    front_door = f"http://{_front_door(setting.inventory)}"

    def new_lease(fault: PlannedFault, undo: Undo) -> Lease:
        now = host.clock.now()
        return Lease(
            id=f"{run_id}-{fault.name}",
            run=run_id,
            run_dir=str(run_dir.absolute()),
            stack=plan.stack,
            fault=fault.name,
            kind=fault.fault.kind,
            targets=tuple(t.name for t in fault.targets),
            undo=undo,
            boot_id=host.clock.boot_id(),
            granted_at=now,
            lease_until=now + fault.lease_s,
        )

    def guards(now: float) -> Trip | None:
        for guard in plan.experiment.guards:
            tripped = check_guard(guard, evidence.live.recent(now, float(guard.over)))
            if tripped is not None:
                return Trip(tripped.guard, tripped.value, tripped.bound)
        return None

    return Crew(
        host=host,
        journal=evidence.journal,
        keeper=FaultKeeper(host, evidence.journal, lease_store(setting.state), new_lease),
        traffic=DrivenLoad(loads, front_door, host.clock, evidence.sample, origin),
        watch=ProbeWatch(
            host, evidence.journal, new_probes(), setting.inventory.targets, evidence.readings.append, origin
        ),
        stop=stop,
        origin=origin,
        gate=lambda: users_are_served(loads, front_door, host.clock),
        guards=guards,
        alive=watchdog.alive,
    )


def _front_door(inventory: Inventory) -> str:
    (gateway, *_) = inventory.of_role("gateway")
    return gateway.via or gateway.address
