"""The probes of a run: each asked at its own pace, every answer and every first failure written down.

Readings and spans go to their columnar files; events that the stack tells about itself go to the journal with the
stack's time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from chaos.inventory import Target
from chaos.journal.record import ReadingRow, Span
from chaos.ports import Host
from chaos.probes.probe import Probe, Reading
from chaos.run.keeper import Journal

_SPAN = tuple(each.name for each in fields(Span) if each.name not in ("start_s", "end_s"))


@dataclass
class ProbeWatch:
    """Observes all targets with all probes that apply. `sink` takes reading rows, `spans` records of calls."""

    host: Host
    journal: Journal
    probes: Iterable[Probe]
    targets: tuple[Target, ...]
    sink: Callable[[ReadingRow], None]
    origin: float
    spans: Callable[[Span], None] = lambda _: None
    _failing: set[tuple[str, str]] = field(default_factory=set)

    async def look(self) -> None:
        """Observe everything once, all at the same time. Raises OSError when evidence cannot be written."""
        async with asyncio.TaskGroup() as group:
            for probe, target in self._pairs():
                group.create_task(self._read(probe, target))

    async def run(self, until: asyncio.Event) -> None:
        """Observe until told to end, then once more. Raises OSError when evidence cannot be written."""
        began, pairs = self.host.clock.now(), self._pairs()
        async with asyncio.TaskGroup() as group:
            for place, (probe, target) in enumerate(pairs, start=1):
                first = began + probe.period_s * place / (len(pairs) + 1)
                group.create_task(self._observe(probe, target, first, until))

    def _pairs(self) -> list[tuple[Probe, Target]]:
        return [(probe, target) for probe in self.probes for target in self.targets if probe.applies_to(target)]

    async def _observe(self, probe: Probe, target: Target, first: float, until: asyncio.Event) -> None:
        """Looks are spread over the period: all at once they would hold up arrivals and injects due that second."""
        when = first
        await self._sleep(when, until)
        while not until.is_set():
            await self._read(probe, target)
            when = max(when + probe.period_s, self.host.clock.now())
            await self._sleep(when, until)
        await self._read(probe, target)

    async def _read(self, probe: Probe, target: Target) -> None:
        self._note(await probe.read(target, self.host))

    async def _sleep(self, when: float, until: asyncio.Event) -> None:
        sleeping = asyncio.ensure_future(self.host.clock.sleep_until(when))
        ending = asyncio.ensure_future(until.wait())
        _, pending = await asyncio.wait((sleeping, ending), return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()

    def _note(self, reading: Reading) -> None:
        t = self.host.clock.now() - self.origin
        for series, value in reading.values.items():
            self.sink(ReadingRow(t, reading.target, series, value))
        for span in reading.spans:
            self.spans(_span(span, self.origin))
        for event in reading.events:
            self._tell(reading.target, event)
        where = (reading.probe, reading.target)
        if reading.error is None:
            self._failing.discard(where)
        elif where not in self._failing:
            self._failing.add(where)
            self.journal.record("probe_failed", probe=reading.probe, target=reading.target, why=reading.error)

    def _tell(self, source: str, event: Mapping[str, Any]) -> None:
        told = dict(event)
        at = float(told.pop("mono", self.host.clock.now())) - self.origin
        told.pop("seq", None)
        self.journal.record("event", **{**told, "source": source, "at": at})


def _span(told: Mapping[str, Any], origin: float) -> Span:
    times = {"start_s": told["start"] - origin, "end_s": told["end"] - origin}
    return Span(**times, **{name: told[name] for name in _SPAN})
