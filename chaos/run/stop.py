"""The one way a run is told to end early: a flag with a reason. The first reason stays; later ones change nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

ERROR = "error"
"""`by` when the harness itself cannot go on."""

DECIDED = "decided"
"""`by` when nothing that is still to come could change the verdict."""


@dataclass
class Stop:
    """Raised flags are waited for or asked; `by` is who raised it first: SIGINT, SIGTERM, guard, DECIDED, ERROR."""

    by: str | None = None
    why: str = ""
    _event: asyncio.Event = field(default_factory=asyncio.Event)
    _parts: list[Stop] = field(default_factory=list)

    def part(self) -> Stop:
        """A stop of its own for one part of the whole: it ends with the whole, and may end alone."""
        part = Stop()
        self._parts.append(part)
        if self.by is not None:
            part.request(self.by, self.why)
        return part

    def request(self, by: str, why: str = "") -> bool:
        """True when this was the first request."""
        if self.by is not None:
            return False
        self.by, self.why = by, why
        self._event.set()
        for part in self._parts:
            part.request(by, why)
        return True

    def requested(self) -> bool:
        """Whether anybody asked."""
        return self.by is not None

    async def wait(self) -> None:
        """Return when somebody asks."""
        await self._event.wait()
