"""A small run in virtual time: a fault, a load and probes that do as they are told, and a journal kept in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.inventory import Target
from chaos.plan.plan import Plan, PlannedFault
from chaos.plan.timeline import steps_of, windows_of
from chaos.ports import Host
from chaos.run.keeper import FaultKeeper
from chaos.run.lease import Lease
from chaos.run.runner import Crew, Trip
from chaos.run.stop import Stop
from chaos.spec.model import BlastRadius, Experiment, Windows
from chaos.testing.clock import VirtualClock
from chaos.units import Duration


@dataclass
class World:
    """What really holds, and everything that was done, in order."""

    broken: set[str] = field(default_factory=set)
    done: list[tuple[float, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Toy:
    """A fault on a World; each switch makes one verb misbehave."""

    world: World
    name: str = "toy"
    dead: bool = False
    never_seen: bool = False
    breaks_in_inject: bool = False
    failing_reverts: list[Exception] = field(default_factory=list)
    observer_hangs: bool = False
    slow_to_go: bool = False
    kind: ClassVar[str] = "toy"
    summary: ClassVar[str] = "a toy"
    fidelity: ClassVar[str] = "none"
    observer: ClassVar[str] = "an eye"

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        return ()

    def _did(self, verb: str) -> None:
        self.world.done.append((round(asyncio.get_running_loop().time() - 1000, 3), f"{verb} {self.name}"))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        if self.dead:
            raise CannotInject("engine-a is dead already")
        self._did("prepare")
        return {"name": self.name}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        self._did("inject")
        if self.breaks_in_inject:
            self.world.broken.add(self.name)
            raise CannotInject("half-way")
        if not self.never_seen:
            self.world.broken.add(self.name)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        if self.observer_hangs:
            await asyncio.Event().wait()
        return Sighting(seen=self.name in self.world.broken, what="looked")

    async def revert(self, undo: Undo, host: Host) -> None:
        self._did("revert")
        if self.failing_reverts:
            raise self.failing_reverts.pop()
        self.world.broken.discard(self.name)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        if self.slow_to_go:
            await asyncio.sleep(0.1)
        return Sighting(seen=self.name not in self.world.broken, what="looked")


class MemoryJournal:
    """Records in a list; `full_after` makes it fail like a full disk from that record on."""

    def __init__(self, full_after: int | None = None) -> None:
        self.lines: list[dict[str, Any]] = []
        self.full_after = full_after

    def record(self, kind: str, /, **fields: Any) -> object:
        if self.full_after is not None and len(self.lines) >= self.full_after:
            raise OSError(28, "No space left on device")
        self.lines.append({"kind": kind, "t": asyncio.get_running_loop().time() - 1000, **fields})
        return None

    def kinds(self) -> list[str]:
        return [line["kind"] for line in self.lines]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == kind]


class MemoryLeases:
    """Leases in a dict."""

    def __init__(self) -> None:
        self.held: dict[str, Lease] = {}

    def grant(self, lease: Lease) -> None:
        self.held[lease.id] = lease

    def holds(self, lease_id: str) -> bool:
        return lease_id in self.held

    def remove(self, lease_id: str) -> None:
        self.held.pop(lease_id, None)


class ToyTraffic:
    """A load of fixed length."""

    def __init__(self, length_s: float) -> None:
        self.length_s = length_s
        self.cut = False

    def planned(self) -> Mapping[str, int]:
        return {"chat": 100}

    async def run(self, start_at: float, stop: asyncio.Event) -> Mapping[str, Any]:
        left = start_at + self.length_s - asyncio.get_running_loop().time()
        try:
            await asyncio.wait_for(stop.wait(), left)
            self.cut = True
        except TimeoutError:
            pass
        return {"loads": {"chat": {"planned": 100, "sent": 100, "finished": 100}}}


class ToyWatch:
    """Observes nothing, until told."""

    async def look(self) -> None:
        """Nothing to see."""

    async def run(self, until: asyncio.Event) -> None:
        await until.wait()


@dataclass
class Run:
    """Everything of one toy run."""

    plan: Plan
    crew: Crew
    journal: MemoryJournal
    leases: MemoryLeases
    traffic: ToyTraffic
    stop: Stop


def plan_of(*faults: PlannedFault) -> Plan:
    windows = windows_of(Windows(Duration(5), Duration(4), Duration(2)), faults)
    experiment = Experiment(
        name="toy", path="", text="", version=1, title="", why="", owner="", runbook="", tags=(),
        blast_radius=BlastRadius(("engine",), Duration(60)), loads=(), windows=Windows(), faults=(), guards=(),
        hypotheses=(), lines={},
    )  # fmt: skip
    return Plan(experiment, "toy", "toy", 1, faults, windows, steps_of(windows, faults), windows[-1].end, "sha256:0")


def planned(toy: Toy, start: float = 5, end: float = 10) -> PlannedFault:
    return PlannedFault(toy.name, cast("Any", toy), (), start, end, end - start + 4)


def lease_of(fault: PlannedFault, undo: Undo) -> Lease:
    return cast("Lease", _Lease(f"lease-{fault.name}"))


@dataclass(frozen=True)
class _Lease:
    id: str


async def served() -> str | None:
    return None


def set_up(*faults: PlannedFault, full_after: int | None = None, trip_at: float | None = None, **crew: Any) -> Run:
    host = cast("Host", _ClockOnly(VirtualClock()))
    journal, leases, stop = MemoryJournal(full_after), MemoryLeases(), Stop()
    plan = plan_of(*faults)
    traffic = ToyTraffic(plan.load_end)
    keeper = FaultKeeper(host, journal, cast("Any", leases), lease_of)

    def guards(now: float) -> Trip | None:
        return Trip("success", 0.1, "below 0.5") if trip_at is not None and now >= trip_at else None

    parts: dict[str, Any] = {"gate": served, "guards": guards, "alive": lambda: True, **crew}
    return Run(
        plan,
        Crew(host, journal, keeper, traffic, ToyWatch(), stop, host.clock.now(), **parts),
        journal,
        leases,
        traffic,
        stop,
    )


@dataclass(frozen=True)
class _ClockOnly:
    clock: VirtualClock


def failing(times: int) -> list[Exception]:
    return [RevertFailed("still there; run `undo it`") for _ in range(times)]
