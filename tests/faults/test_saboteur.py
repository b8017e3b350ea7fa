"""A fault that is a saboteur keeps the contract by its base alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.adapters.host import real_host
from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.testing.clock import run_virtual
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.testing.host import InMemoryHost


@dataclass(frozen=True)
class Burning(SaboteurFault):
    """The least there can be of one."""

    kind: ClassVar[str] = "burning"
    program: ClassVar[str] = "cpu"
    summary: ClassVar[str] = "Burns."
    fidelity: ClassVar[str] = "none"
    observer: ClassVar[str] = "a look at the command lines"

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        del targets
        return ()

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        del undo
        return {"cores": 1, "share": 0.05}

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        found = host.processes.with_argument(undo["warrant"])
        return Sighting(bool(found), f"{len(found)} at work")

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        harmed = await self.seen_harmed(undo, host)
        return Sighting(not harmed.seen, harmed.what)


def test_in_memory() -> None:
    async def main() -> None:
        await check_fault(Burning(), (), InMemoryHost().host)
        await check_negative_control(Burning(), (), InMemoryHost().host)

    run_virtual(main)


def test_with_real_processes() -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_fault(Burning(), (), host)

    asyncio.run(main())
