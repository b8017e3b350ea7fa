"""The edge to a target is closed: callers are refused at once while the target itself is well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.edges import by_caller
from chaos.faults.grips.grip import CONNECT_S, Grip, grips_in, must_answer, on_edges, without_caller, without_proxy
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, Need


@dataclass(frozen=True)
class NetDown:
    """Turns the fault proxy's listener before a target off."""

    kind: ClassVar[str] = "net_down"
    summary: ClassVar[str] = (
        "Connections to the target are closed and new ones refused; the target itself keeps running."
    )
    fidelity: ClassVar[str] = "network"
    observer: ClassVar[str] = "a connect through the edge is refused while a direct connect is accepted"
    needs: ClassVar[tuple[Need, ...]] = ()

    from_: str | None = by_caller()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a proxy before it."""
        return (*without_proxy(targets), *without_caller(targets, self.from_))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the mark. Raises CannotInject for a dead target or a proxy closed by hand."""
        grips = on_edges(targets, self.from_)
        for target in targets:
            await must_answer(target, host)
        for grip in grips:
            if grip.proxy:
                await grip.proxy.must_be_up(host)
        return {"mark": new_mark(self.kind), "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Close each edge. Raises CannotInject."""
        del targets
        for grip in grips_in(undo):
            if grip.proxy:
                await grip.proxy.take_down(undo["mark"], host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each edge refuses while its target accepts."""
        del targets
        return await every_one(_seen_closed(grip, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Open each edge that no other fault keeps closed. Raises RevertFailed."""
        await all_of(grip.proxy.bring_up(undo["mark"], host) for grip in grips_in(undo) if grip.proxy)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each target answers through its edge."""
        del targets
        return await every_one(seen_back(grip, grip.via or grip.address, undo["mark"], host) for grip in grips_in(undo))


async def _seen_closed(grip: Grip, host: Host) -> Sighting:
    via = await host.network.connect(grip.via or grip.address, CONNECT_S)
    direct = await host.network.connect(grip.address, CONNECT_S)
    what = f"{grip.name}: connect to {grip.via} {via}, direct to {grip.address} {direct}"
    return Sighting(via == "refused" and direct == "accepted", what)
