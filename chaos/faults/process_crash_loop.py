"""A target dies, is started again, and dies again: the loop that a bad image, a corrupt file or a poisoned request
makes.

Its supervisor carries the burden and ends each life early, so its own back-off is what users feel.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import Grip, alive, family, grips_in, listed_processes, numbers
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.faults.process_kill import kill
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting
from chaos.units import Duration

_STARTS = 2
"""Starts after the inject that make a loop: what was started once more has died as well."""
_STARTS_WITHIN_S = 10.0
"""Longest time that these starts take by themselves, with the supervisor's pauses between them."""


@dataclass(frozen=True)
class ProcessCrashLoop:
    """Kills a target's processes again and again."""

    kind: ClassVar[str] = "process_crash_loop"
    summary: ClassVar[str] = "The target dies, and dies again a moment after each new start, with pauses that grow."
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = "/proc no longer has the process, and its supervisor has had to start it twice since"
    needs: ClassVar[tuple[Need, ...]] = ()

    life: Duration = setting("how long each new life lasts", default=Duration(0.3), least=0, most=600)
    deaths: int | None = setting(
        "how often it dies; default again and again until the revert", default=None, least=2, most=1000
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process, and a supervisor that starts it again."""
        lifeless = (f"{t.name}: the inventory lists no process to kill" for t in targets if not t.pids)
        return (*lifeless, *supervisor.without(targets, "start it again and again"))

    @property
    def shows_within_s(self) -> float:
        """One whole life lies between two starts (`chaos.verdict.sightings.SlowToShow`)."""
        return float(self.life) + _STARTS_WITHIN_S

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note the processes, and how often each target was started so far. Raises CannotInject."""
        records = []
        for target in targets:
            processes = family(await listed_processes(target, host), host.processes)
            record = await supervisor.look(target.handles["supervisor"], target.name, host)
            if record is None or "starts" not in record:
                raise CannotInject(f"{target.name}: its supervisor does not say how often it was started")
            records.append({**Grip.of(target, processes).to_json(), "starts": record["starts"]})
        return {"mark": new_mark(self.kind), "targets": records}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Lay the burden, then kill what runs. Raises CannotInject."""
        del targets
        more = None if self.deaths is None else self.deaths - 1
        burden: dict[str, Any] = {"life_s": float(self.life), "deaths": more}
        for grip in grips_in(undo):
            if grip.supervisor:
                await supervisor.lay(grip.supervisor, grip.name, undo["mark"], burden, host)
        kill(grips_in(undo), signals.SIGKILL, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The process is gone, and so was the one after it."""
        del targets
        pairs = zip(grips_in(undo), undo["targets"], strict=True)
        return await every_one(_seen_looping(grip, record["starts"], host) for grip, record in pairs)

    async def revert(self, undo: Undo, host: Host) -> None:
        """Take the burden away; the supervisor starts the target at once. Raises RevertFailed."""
        await all_of(supervisor.releases(grips_in(undo), undo["mark"], host))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every address answers again."""
        del targets
        return await every_one(seen_back(grip, grip.address, undo["mark"], host) for grip in grips_in(undo))


async def _seen_looping(grip: Grip, before: int, host: Host) -> Sighting:
    left = alive(grip.processes, host.processes)
    if left:
        return Sighting(seen=False, what=f"{grip.name}: process {numbers(left)} lives")
    record = await supervisor.look(grip.supervisor, grip.name, host) if grip.supervisor else None
    starts = int(record["starts"]) - before if record else 0
    return Sighting(
        starts >= _STARTS,
        f"{grip.name}: process {numbers(grip.processes)} gone from /proc, started {starts} times since",
    )
