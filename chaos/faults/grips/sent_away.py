"""Faults that send targets away in good order and keep them away: held, asked to leave, released at the revert.

A fault says what it needs of its targets (`problems`) and how their absence shows (`seen_away`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import Grip, family, grips_in, listed_processes
from chaos.faults.grips.leaving import leave
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.units import Duration

_LOOKS_S = 3.0


class SentAway(ABC):
    """Base of the faults; they are frozen dataclasses of settings, `grace` among them."""

    kind: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    fidelity: ClassVar[str] = "process"
    grace: Duration

    @abstractmethod
    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """Why these targets cannot be sent away."""

    @abstractmethod
    async def seen_away(self, grip: Grip, host: Host) -> Sighting:
        """Does the observer see that this target has left, in the way that the fault is about?"""

    @property
    def shows_within_s(self) -> float:
        """What leaves in good order is not gone at once (`chaos.verdict.sightings.SlowToShow`)."""
        return float(self.grace) + _LOOKS_S

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note which processes there are. Raises CannotInject for a dead target."""
        grips = [Grip.of(target, family(await listed_processes(target, host), host.processes)) for target in targets]
        return {"hold": new_mark(self.kind), "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Hold everything, then ask it to leave, all at the same time. Raises CannotInject."""
        del targets
        await supervisor.hold_all(grips_in(undo), undo["hold"], host)
        await leave(grips_in(undo), float(self.grace), host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """All are seen to have left."""
        del targets
        return await every_one(self.seen_away(grip, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Release everything; the supervisor starts it at once. Raises RevertFailed."""
        await all_of(supervisor.releases(grips_in(undo), undo["hold"], host))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every address answers again."""
        del targets
        return await every_one(seen_back(grip, grip.address, undo["hold"], host) for grip in grips_in(undo))
