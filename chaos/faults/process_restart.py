"""A target is restarted on purpose, as in a rollout: it is asked to leave, and its supervisor starts it again at once.

Without drain nobody is asked: a rollout with a grace period of zero, which cuts off whatever is under way.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import ANSWER_S, Grip, alive, family, grips_in, listed_processes, numbers
from chaos.faults.grips.leaving import leave, successor
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.process_kill import kill
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting
from chaos.units import Duration

_STARTS_WITHIN_S = 10.0  # the new process must answer before the restart can be told from a death


@dataclass(frozen=True)
class ProcessRestart:
    """Restarts a target's processes once."""

    kind: ClassVar[str] = "process_restart"
    summary: ClassVar[str] = "The target is restarted once, in good order or without drain, and comes back by itself."
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = "/proc has another process in the old one's place, and its own address answers"
    needs: ClassVar[tuple[Need, ...]] = ()

    drain: bool = setting("false ends it with SIGKILL, as a rollout that waits for nobody", default=True)
    grace: Duration = setting(
        "how long it may take to leave before it is killed", default=Duration(10), least=0.1, most=600
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process, and a supervisor that starts it again."""
        lifeless = (f"{t.name}: the inventory lists no process to restart" for t in targets if not t.pids)
        return (*lifeless, *supervisor.without(targets, "start it again"))

    @property
    def shows_within_s(self) -> float:
        """The old process may take its grace to leave (`chaos.verdict.sightings.SlowToShow`)."""
        return (float(self.grace) if self.drain else 0.0) + _STARTS_WITHIN_S

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note which processes there are. Raises CannotInject for a dead target."""
        grips = [Grip.of(target, family(await listed_processes(target, host), host.processes)) for target in targets]
        return {"targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """End what runs. Raises CannotInject when the processes have changed."""
        del targets
        if self.drain:
            await leave(grips_in(undo), float(self.grace), host)
        else:
            kill(grips_in(undo), signals.SIGKILL, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every old process is gone, and another one answers."""
        del targets
        return await every_one(_seen_renewed(grip, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Nothing to do: the supervisor starts it again, whatever becomes of us."""

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every address answers again."""
        del targets
        return await every_one(seen_back(grip, grip.address, None, host) for grip in grips_in(undo))


async def _seen_renewed(grip: Grip, host: Host) -> Sighting:
    left = alive(grip.processes, host.processes)
    if left:
        return Sighting(seen=False, what=f"{grip.name}: process {numbers(left)} lives")
    record = await supervisor.look(grip.supervisor, grip.name, host) if grip.supervisor else None
    pids = tuple(record["pids"]) if record else ()
    if not successor(grip, pids, host):
        return Sighting(seen=False, what=f"{grip.name}: process {numbers(grip.processes)} gone, no other in its place")
    answers = await host.network.round_trip(grip.address, grip.wire, ANSWER_S) is not None
    told = f"process {pids[0]} in place of {grip.processes[0].pid}"
    return Sighting(answers, f"{grip.name}: {told}, {grip.address} {'answers' if answers else 'does not answer'}")
