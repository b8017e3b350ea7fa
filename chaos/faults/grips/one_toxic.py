"""Faults that are one toxic on the edge of each target. All their verbs stand here.

A fault says which toxic it is (`toxic`), what its observer must know (`expected`), and how the observer tells harm from
health (`seen_harmed`, `seen_well`), which look at grip and undo alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import Grip, grips_in, without_caller, without_proxy
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host, Need

Direction = Literal["downstream", "upstream"]


@dataclass(frozen=True)
class Toxic:
    """One toxic of the fault proxy. Attributes that are None are not sent."""

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    share: float = 1.0
    direction: Direction = "downstream"


class OneToxic(ABC):
    """Base of the faults; they are frozen dataclasses of settings."""

    kind: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()

    @property
    def caller(self) -> str | None:
        """The role whose callers alone are harmed; None for all."""
        return None

    @abstractmethod
    def toxic(self) -> Toxic:
        """As the settings say."""

    @abstractmethod
    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """Does the observer see the harm at this edge now?"""

    @abstractmethod
    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """Does the observer see that this edge works again, whatever became of the toxic? Works on a bare fault."""

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """What the observer must know, beside the toxic's name. Raises CannotInject."""
        return {}

    def obstacles(self, _targets: tuple[Target, ...], /) -> tuple[str, ...]:
        """Why these targets cannot be harmed so, beyond the lack of a proxy that can do it."""
        return ()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a proxy before it that has the toxic."""
        lacking = (*without_proxy(targets), *without_caller(targets, self.caller))
        return (*lacking, *toxics.unknown_to(targets, self.toxic().kind), *self.obstacles(targets))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the toxic's name and learn what to expect. Raises CannotInject."""
        return {
            **await toxics.prepared(self.kind, targets, host, caller=self.caller),
            **await self.expected(targets, host),
        }

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Add the toxic to each edge. Raises CannotInject."""
        del targets
        toxic = self.toxic()
        await toxics.put(undo, toxic.kind, toxic.share, toxic.attributes, host, direction=toxic.direction)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The observer sees the harm at each edge."""
        del targets
        return await every_one(self.seen_harmed(grip, undo, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the toxic from each edge. Raises RevertFailed."""
        await toxics.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The toxic is absent and each edge works."""
        del targets
        return await every_one(self._seen_gone(grip, undo, host) for grip in grips_in(undo))

    async def _seen_gone(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        return await toxics.seen_absent(grip, undo["toxic"], await self.seen_well(grip, undo, host), host)
