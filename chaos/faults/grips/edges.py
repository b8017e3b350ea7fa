"""An edge as an observer on TCP sees it: a talk of its own through the edge beside a direct one.

The observer asks the target again and again on one connection (`Network.exchange`), so it needs nothing that the toxic
tells of itself; the proxy's count of what the toxic has touched is the second witness.
"""

from __future__ import annotations

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.one_toxic import Direction, OneToxic
from chaos.ports import Exchanged, Host
from chaos.settings import setting

_SMALL = 1
_TALK_S = 3.0  # the longest direct talk
_MORE_S = 0.5  # a talk through a slow edge need not last longer than it should by more than this


def which_way() -> Direction:
    """The setting `direction`."""
    doc = "downstream harms what the target answers, upstream what it is asked"
    chosen: Direction = setting(doc, default="downstream")
    return chosen


def by_caller() -> str | None:
    """The setting `from`."""
    doc = "only calls from this role (gateway, agent, users); default all"
    chosen: str | None = setting(doc, default=None, key="from")
    return chosen


async def seen_talk(grip: Grip, host: Host, *, size: int = _SMALL) -> Sighting:
    """Does a talk through the edge go well to its end?"""
    via = await host.network.exchange(grip.via or grip.address, grip.wire, size, _patience_s(size))
    return Sighting(via.ending == "whole", f"a talk through {grip.via} was {_told(via)}")


class EdgeFault(OneToxic):
    """Harm to the bytes on an edge, of all callers or those of one role."""

    from_: str | None

    @property
    def caller(self) -> str | None:
        """As the setting says."""
        return self.from_


class EndedTalk(EdgeFault):
    """Harm that ends a talk before its time.

    The undo holds the `endings` that it may have, the `most` bytes that may come, and if need be the `size` of the talk
    and a time `after_s` that it lasts.
    """

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """A talk through the edge ends as it should; a direct one is whole."""
        size = undo.get("size", _SMALL)
        patience_s = _patience_s(size) + undo.get("after_s", 0.0)
        via = await host.network.exchange(grip.via or grip.address, grip.wire, size, patience_s)
        direct = await host.network.exchange(grip.address, grip.wire, size, _patience_s(size))
        ended = via.ending in undo["endings"] and via.received <= undo["most"]
        witness = await toxics.witness(grip, undo["toxic"], host)
        return Sighting(
            ended and direct.ending == "whole" and witness.seen,
            f"{grip.name}: a talk through {grip.via} was {_told(via)}, a direct one {_told(direct)}; {witness.what}",
        )

    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """A talk of the same length is whole."""
        return await seen_talk(grip, host, size=undo.get("size", _SMALL))


class SlowTalk(EdgeFault):
    """Harm that makes a talk of `size` bytes last `added_s` longer at least; both stand in the undo."""

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The edge adds at least half of what it should."""
        added_s = await _added_s(grip, undo, host)
        witness = await toxics.witness(grip, undo["toxic"], host)
        if added_s is None:
            return Sighting(seen=False, what=f"{grip.name}: no answer at {grip.via} or {grip.address} to compare")
        return Sighting(
            added_s >= undo["added_s"] / 2 and witness.seen,
            f"{grip.name}: {undo['size']} bytes through {grip.via} take {added_s * 1000:.1f} ms more than direct; "
            f"{witness.what}",
        )

    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The edge adds less than half of it."""
        added_s = await _added_s(grip, undo, host)
        if added_s is None:
            return Sighting(seen=False, what=f"no answer at {grip.via} or {grip.address} to compare")
        return Sighting(added_s < undo["added_s"] / 2, f"{added_s * 1000:.1f} ms added by the edge")


async def _added_s(grip: Grip, undo: Undo, host: Host) -> float | None:
    """What the edge adds to the talk, in seconds, at most a little more than what is looked for."""
    direct = await host.network.exchange(grip.address, grip.wire, undo["size"], _TALK_S)
    patience_s = direct.took_s + undo["added_s"] + _MORE_S
    via = await host.network.exchange(grip.via or grip.address, grip.wire, undo["size"], patience_s)
    if direct.ending != "whole" or via.ending not in ("whole", "silent"):
        return None
    return via.took_s - direct.took_s


def _patience_s(size: int) -> float:
    return ANSWER_S if size == _SMALL else _TALK_S


def _told(talk: Exchanged) -> str:
    return f"{talk.ending} after {talk.received} bytes"
