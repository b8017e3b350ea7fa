"""Faults in which a view stands in for a table of a vector store. All their verbs stand here; see grips/tables.

A fault says what the view answers (`view`), what its observer must know (`expected`), and how the harm shows
(`seen_harmed`); both of the latter look at the undo alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import Grip, grips_in
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host, Need


class StandIn(ABC):
    """Base of the faults; they are frozen dataclasses of settings, `table` among them."""

    kind: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    table: str

    @abstractmethod
    def view(self, undo: Undo, target: str) -> str:
        """The query that answers in the table's place at a target; `{hidden}` in it is the table."""

    @abstractmethod
    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """Does the observer see the harm at this target now?"""

    async def expected(self, _grips: tuple[Grip, ...], _host: Host, /) -> Mapping[str, Any]:
        """What the view and the observer must know, beside the mark. Raises CannotInject."""
        return {}

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak PostgreSQL's protocol, the table have a plain name."""
        return tables.not_postgres(targets, table=self.table)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See that there are rows to hide. Raises CannotInject for a table without any, or harmed already."""
        undo = await tables.prepared(self.kind, self.table, targets, host)
        return {**undo, **await self.expected(grips_in(undo), host)}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Move each table away and let the view answer in its place. Raises CannotInject."""
        del targets
        for grip in grips_in(undo):
            await tables.stand_in(grip, undo, self.view(undo, grip.name), host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The observer sees the harm at each target."""
        del targets
        return await every_one(self.seen_harmed(grip, undo, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the table its name back. Raises RevertFailed."""
        await tables.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """There are rows where searches look, and nothing under our mark."""
        del targets
        return await tables.seen_whole(undo, host)
