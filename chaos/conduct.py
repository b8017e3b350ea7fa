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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from chaos import environment
from chaos.adapters.entropy import SeededEntropy
from chaos.faults.catalog import by_kind
from chaos.faults.fault import Undo
from chaos.inventory import Inventory
from chaos.journal.evidence import ENVIRONMENT_FILE, sha256_of
from chaos.journal.masking import secrets_in
from chaos.journal.record import JOURNAL_VERSION, ReadingRow, Sample, Span
from chaos.journal.recorder import Recorder
from chaos.journal.samples import READINGS_FILE, SAMPLES_FILE, RowWriter, reading_writer, sample_writer
from chaos.journal.spans import SPANS_FILE, span_writer
from chaos.load.prompts import load_prompts, prompts_dirs
from chaos.load.schedule import LoadPlan, plan_load
from chaos.paths import project_root
from chaos.plan.make import to_json as plan_json
from chaos.plan.plan import Plan, PlannedFault
from chaos.ports import Host
from chaos.probes.catalog import new_probes
from chaos.run.flushing import keep_flushed
from chaos.run.keeper import FaultKeeper
from chaos.run.lease import Lease
from chaos.run.lock import hold
from chaos.run.noise import Noise
from chaos.run.recovery import recover
from chaos.run.runner import Crew, Finish, Foregone, Trip
from chaos.run.runner import run as carry_out
from chaos.run.stop import ERROR, Stop
from chaos.run.traffic import DrivenLoad, users_are_served
from chaos.run.watch import ProbeWatch
from chaos.run.watchdog import NOTHING_LEFT
from chaos.run.watchdog_process import WatchdogProcess
from chaos.stacks.local import LocalStack
from chaos.verdict.live import Guards, Tripped
from chaos.verdict.outlook import Outlook
from chaos.wiring import lease_store

Tell = Callable[[str, Mapping[str, Any]], None]
"""Hears every journal record as (kind, fields), and every sample as ("sample", {"sample": ...})."""

LEFTOVERS_WITHIN_S = 5.0
INPUTS = ("experiment.yaml", "plan.json", "inventory.json", ENVIRONMENT_FILE)
"""What a run is given; sealed with its evidence, because a verdict is read from them too."""


@dataclass(frozen=True)
class Setting:
    """Where a run happens. `out` is the folder in which its run directory is made, `state` the harness's state;
    `stop_when_refuted` ends it as soon as nothing can change that it is.
    """

    stack: LocalStack
    inventory: Inventory
    host: Host
    out: Path
    state: Path
    stop_when_refuted: bool = False


class LeftBehind(Exception):
    """A dead run left a fault that could not be reverted; nothing new may be injected on top of it."""


async def conduct(plan: Plan, setting: Setting, stop: Stop, tell: Tell) -> tuple[Path, Finish]:
    """Carry out a plan under the lock of its stack. Raises StackBusy, LeftBehind, OSError, PromptError."""
    run_id = _run_id(setting.host, plan)
    run = _Run(plan, setting, stop, tell, run_id, setting.out / run_id)
    with hold(setting.stack.lock, run_id, run.folder, setting.host.processes):
        await _clear_leftovers(setting)
        _write_inputs(run.folder, plan, setting.inventory)
        return run.folder, await run.carry_out()


def _run_id(host: Host, plan: Plan) -> str:
    stamp = datetime.fromtimestamp(host.clock.wall(), UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    return f"{stamp}-{SeededEntropy(plan.seed).stream(f'{os.getpid()}/{host.clock.now()}').randrange(16**4):04x}"


async def _clear_leftovers(setting: Setting) -> None:
    """A run that died may still be being cleaned up by its watchdog; wait for it, then do it ourselves."""
    host, store, stack = setting.host, lease_store(setting.state), str(setting.stack.folder)
    give_up = host.clock.now() + LEFTOVERS_WITHIN_S
    while (left := store.list(stack=stack)).leases or left.damaged:
        if host.clock.now() < give_up:
            await host.clock.sleep_until(host.clock.now() + 0.1)
            continue
        results = await recover(store, host, faults_by_kind=by_kind, only_stack=stack)
        stuck = [r for r in results if not r.ok]
        if stuck:
            raise LeftBehind(f"fault `{stuck[0].fault}` of a dead run could not be reverted: {stuck[0].why}")


def _write_inputs(folder: Path, plan: Plan, inventory: Inventory) -> None:
    folder.mkdir(parents=True)
    (folder / "experiment.yaml").write_text(plan.experiment.text)
    for name, value in (
        ("plan.json", plan_json(plan)),
        ("inventory.json", inventory.to_json()),
        (ENVIRONMENT_FILE, _environment(plan, inventory)),
    ):
        (folder / name).write_text(_pretty(value))


def _environment(plan: Plan, inventory: Inventory) -> dict[str, Any]:
    project = project_root(Path(plan.experiment.path))
    weaknesses = list(inventory.weaknesses)
    return environment.describe(project, seed=plan.seed, profile=plan.profile, weaknesses=weaknesses)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class _ToldJournal:
    """A recorder whose records are also told to whoever watches."""

    recorder: Recorder
    tell: Tell
    outlook: Outlook | None

    def record(self, kind: str, /, **fields: Any) -> object:
        record = self.recorder.record(kind, **fields)
        if self.outlook:
            self.outlook.hear(record)
        self.tell(kind, {"t": record.t, **fields})
        return record


@dataclass(frozen=True)
class _Evidence:
    """The open files of one run."""

    journal: _ToldJournal
    samples: RowWriter[Sample]
    readings: RowWriter[ReadingRow]
    spans: RowWriter[Span]
    guards: Guards
    outlook: Outlook | None
    origin: float
    folder: Path

    def sample(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.guards.feed(sample)
        if self.outlook:
            self.outlook.feed(sample)
        self.journal.tell("sample", {"sample": sample})

    def reading(self, reading: ReadingRow) -> None:
        self.readings.append(reading)
        if self.outlook:
            self.outlook.read(reading)

    def foregone(self, now_s: float) -> Foregone | None:
        names = self.outlook.refuted(now_s) if self.outlook else ()
        return Foregone(names, self.samples.count) if names else None

    def seal(self) -> None:
        sums = {name: sha256_of(self.folder / name) for name in INPUTS}
        sums |= {SAMPLES_FILE: self.samples.sha256, READINGS_FILE: self.readings.sha256, SPANS_FILE: self.spans.sha256}
        counts = {"samples": self.samples.count, "readings": self.readings.count, "spans": self.spans.count}
        self.journal.recorder.seal(sha256=sums, **counts)


@dataclass(frozen=True)
class _Run:
    """One run: the adapters of its stages, alive for its length."""

    plan: Plan
    setting: Setting
    stop: Stop
    tell: Tell
    run_id: str
    folder: Path

    async def carry_out(self) -> Finish:
        """Open the evidence, start the watchdog, run the plan, seal. What we could not revert the watchdog may."""
        loads = self._loads()
        async with self._evidence(loads) as evidence:
            evidence.journal.record("run_started", **self._started(evidence.origin))
            for target in self.setting.inventory.of_role("embedder"):
                # Recall depends on it, and the stack takes a plainer one where the real model is not installed.
                evidence.journal.record("note", text=f"{target.name}: {target.model or 'model unknown'}")
            watchdog = WatchdogProcess(self.setting.state / "leases", self.run_id, self.folder / "watchdog.jsonl")
            await watchdog.start()
            try:
                finish = await carry_out(self.plan, self._crew(evidence, loads, watchdog))
            finally:
                left = await watchdog.done()
            return replace(finish, reverted=finish.reverted or left == NOTHING_LEFT)

    def _loads(self) -> tuple[LoadPlan, ...]:
        plan, entropy = self.plan, SeededEntropy(self.plan.seed)
        folders = prompts_dirs(Path(plan.experiment.path))
        length_s, baseline_s = plan.load_end, float(plan.experiment.windows.baseline)
        return tuple(
            plan_load(load, load_prompts(load.prompts, folders), plan.seed, entropy, length_s, baseline_s=baseline_s)
            for load in plan.experiment.loads
        )

    @contextlib.asynccontextmanager
    async def _evidence(self, loads: tuple[LoadPlan, ...]) -> AsyncIterator[_Evidence]:
        """Open all files; on the way out write what waits and seal. Raises OSError only from opening."""
        clock, origin, outlook = self.setting.host.clock, self.setting.host.clock.now(), self._outlook(loads)
        journal = _ToldJournal(Recorder(self.folder, clock, origin, secrets=secrets_in(os.environ)), self.tell, outlook)
        samples, readings = sample_writer(self.folder), reading_writer(self.folder)
        spans = span_writer(self.folder)
        keeping = asyncio.create_task(keep_flushed(clock, (samples.flush, readings.flush, spans.flush)))
        keeping.add_done_callback(self._lost)
        noise = Noise()
        listening = asyncio.create_task(noise.watch(clock, self.setting.host.files))
        evidence = _Evidence(journal, samples, readings, spans, self._guards(), outlook, origin, self.folder)
        try:
            yield evidence
        finally:
            keeping.cancel()
            listening.cancel()
            # A full disk has ended the run as failed already; what is missing shows as an unsealed journal.
            columns = (samples.close, readings.close, spans.close)
            for close in (*columns, partial(self._tell_noise, noise), evidence.seal, journal.recorder.close):
                with contextlib.suppress(OSError):
                    close()

    def _tell_noise(self, noise: Noise) -> None:
        """Add it to what was written at the start, whole or not at all."""
        path = self.folder / ENVIRONMENT_FILE
        known = json.loads(path.read_text())
        self.setting.host.files.write_atomic(path, _pretty({**known, "noise": noise.summary()}))

    def _lost(self, flushing: asyncio.Task[None]) -> None:
        """Rows that cannot be written end the run: a verdict on half of the evidence would be a lie."""
        if not flushing.cancelled() and (failure := flushing.exception()):
            self.stop.request(ERROR, f"{type(failure).__name__}: {failure}")

    def _started(self, origin: float) -> dict[str, Any]:
        plan, clock = self.plan, self.setting.host.clock
        return {
            "version": JOURNAL_VERSION,
            "run": self.run_id,
            "experiment": plan.experiment.name,
            "fingerprint": plan.fingerprint,
            "seed": plan.seed,
            "profile": plan.profile,
            "stack": plan.stack,
            "weaknesses": list(self.setting.inventory.weaknesses),
            "wall": clock.wall(),
            "boot_id": clock.boot_id(),
            "pid": os.getpid(),
            "origin": origin,
        }

    def _crew(self, evidence: _Evidence, loads: tuple[LoadPlan, ...], watchdog: WatchdogProcess) -> Crew:
        host, journal, origin = self.setting.host, evidence.journal, evidence.origin
        inventory = self.setting.inventory
        front_door = f"http://{_front_door(inventory)}"
        return Crew(
            host=host,
            journal=journal,
            keeper=FaultKeeper(host, journal, lease_store(self.setting.state), self._new_lease),
            traffic=DrivenLoad(loads, front_door, host.clock, evidence.sample, origin),
            watch=ProbeWatch(
                host, journal, new_probes(), inventory.targets, evidence.reading, origin, evidence.spans.append
            ),
            stop=self.stop,
            origin=origin,
            gate=lambda: users_are_served(loads, front_door, host.clock),
            guards=lambda now: _trip(evidence.guards.tripped(now)),
            alive=watchdog.alive,
            outlook=evidence.foregone,
        )

    def _new_lease(self, fault: PlannedFault, undo: Undo) -> Lease:
        """Its id is a file name, which the name of a fault need not be."""
        clock = self.setting.host.clock
        now = clock.now()
        return Lease(
            id=f"{self.run_id}-{self.plan.faults.index(fault) + 1}",
            run=self.run_id,
            run_dir=str(self.folder.absolute()),
            stack=str(self.setting.stack.folder),
            fault=fault.name,
            kind=fault.fault.kind,
            targets=tuple(t.name for t in fault.targets),
            undo=undo,
            boot_id=clock.boot_id(),
            granted_at=now,
            lease_until=now + fault.lease_s,
        )

    def _outlook(self, loads: tuple[LoadPlan, ...]) -> Outlook | None:
        """Whoever looks ahead, where that is wanted."""
        if not self.setting.stop_when_refuted:
            return None
        return Outlook(self.plan.experiment, {p.load.name: [each.at_s for each in p.requests] for p in loads})

    def _guards(self) -> Guards:
        """They know the plan: it says how long the load lasts, and when something is changed that may hurt."""
        experiment = self.plan.experiment
        faults = [(float(fault.at), float(fault.at + fault.for_)) for fault in experiment.faults]
        moments = (float(experiment.windows.baseline) + edge for edges in faults for edge in edges)
        return Guards(experiment.guards, length_s=self.plan.load_end, moments=moments)


def _trip(broken: Tripped | None) -> Trip | None:
    return None if broken is None else Trip(**vars(broken))


def _front_door(inventory: Inventory) -> str:
    (gateway, *_) = inventory.of_role("gateway")
    return gateway.via or gateway.address
