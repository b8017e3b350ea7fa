"""Two roles cannot hear each other, and both are well: a route, a policy or a firewall rule has gone between them.

from ──x──► target        the edge of those callers swallows what they say; connections stay open
from ◄──x── target        so does the edge by which the target calls them, where there is one
others ───► target        go on
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.edges import EndedTalk, seen_talk
from chaos.faults.grips.grip import Grip, must_answer, without_proxy
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.sightings import every, every_one
from chaos.inventory import Edge, Target
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class NetPartition(EndedTalk):
    """A black hole in each listener of the fault proxy between the two. Connections that it held end at the revert."""

    kind: ClassVar[str] = "net_partition"
    summary: ClassVar[str] = "One role and the target hear nothing of each other; all others reach both."
    fidelity: ClassVar[str] = "network: bytes vanish; a connect is still accepted, by the proxy"
    observer: ClassVar[str] = (
        "the observer's own talk through each edge between them is never answered, a direct one is, "
        "and one through the edge of every other caller is"
    )

    from_: str = setting("the role that is cut off: gateway, agent, users, ...", key="from")

    def toxic(self) -> Toxic:
        """What is asked never arrives, so nothing is done that nobody hears of."""
        return Toxic("timeout", {"timeout": 0}, direction="upstream")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs an edge from that role or to it."""
        return (
            *without_proxy(targets),
            *(
                f"{t.name}: there is no edge between it and role {self.from_}; it is called by "
                f"{_roles(edge.caller for edge in t.edges)} and calls {_roles(edge.role for edge in t.calls)}"
                for t in targets
                if not self._cut(t)
            ),
        )

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note the edges of both ways, and those that must go on. Raises CannotInject for a dead end of one."""
        made = await super().prepare(targets, host)
        back = [Grip.on(edge, target) for target in targets for edge in self._cut(target) if edge.target != target.name]
        for grip in back:
            await must_answer(grip, host)
            if grip.proxy:
                await grip.proxy.listener(host)
        others = [Grip.on(edge, t) for t in targets for edge in t.edges if edge.caller != self.from_]
        return {
            **made,
            "targets": [*made["targets"], *(grip.to_json() for grip in back)],
            "others": [grip.to_json() for grip in others],
        }

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """Silence."""
        return {"endings": ["silent"], "most": 0}

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """All is silent between the two, and nowhere else."""
        cut = await super().confirm(targets, undo, host)
        if not cut.seen or not undo["others"]:
            return cut
        others = await every_one(_seen_going_on(Grip.from_json(record), host) for record in undo["others"])
        return every((cut, others))

    def _cut(self, target: Target) -> tuple[Edge, ...]:
        return (
            *(edge for edge in target.edges if edge.caller == self.from_),
            *(edge for edge in target.calls if edge.role == self.from_),
        )


async def _seen_going_on(grip: Grip, host: Host) -> Sighting:
    """Does another caller's edge work, but for other faults on it?"""
    works = await seen_talk(grip, host)
    listener = None if works.seen or grip.proxy is None else await grip.proxy.look(host)
    if listener is not None and listener.toxics:
        others = ", ".join(listener.toxics)
        return Sighting(seen=True, what=f"{grip.name}: other faults act on the edge at {grip.via}: {others}")
    return Sighting(works.seen, f"{grip.name}: {works.what}, as it should for its other callers")


def _roles(roles: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(roles)) or "nobody"
