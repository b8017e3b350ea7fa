"""Faults on token streams, and the observer's own stream: asked for, read to its end, and what it was like.

It is a question of a few tokens (`POST /v1/completions`), so asking it changes nothing but the load by one. A fault on
streams is its settings, its toxic, and by what `endings` and traits (`harmed`) its observer knows the harm.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.one_toxic import OneToxic
from chaos.faults.grips.replies import told
from chaos.inventory import ENGINE_ROLES, Target
from chaos.ports import Host, HttpReply

Ending = Literal["whole", "failed", "garbled", "cut call", "broken", "truncated", "silent", "none"]
"""whole: with its [DONE]; failed: an error frame, whatever follows it; garbled: an event that is no JSON; cut call: the
arguments of a tool call are no JSON; broken: inside its body; truncated: valid HTTP without [DONE]; silent: no end in
time.
"""

_MORE_TOKENS = 4  # than pass before the harm, so that there is something to harm
_TOKEN_S = 0.1  # a token that takes longer is no sign of health
_DATA = "data: "
_DONE = "[DONE]"


@dataclass(frozen=True)
class Stream:
    """One stream as it came, without its [DONE]. `took_s` is from the question to the end, or to giving up."""

    ending: Ending
    events: tuple[str, ...]
    took_s: float

    @property
    def doubles(self) -> int:
        """Events that are equal to the one before them."""
        return sum(one == other for one, other in itertools.pairwise(self.events))

    def __str__(self) -> str:
        """In a few words."""
        return f"{self.ending}, {len(self.events)} events in {self.took_s * 1000:.0f} ms"


class StreamFault(OneToxic):
    """Base of the faults on token streams. `endings` are those that a harmed stream may have."""

    endings: ClassVar[frozenset[Ending]]
    after_events: int  # that pass before the harm, where that is a setting

    def harmed(self, via: Stream, direct: Stream, undo: Undo) -> bool:
        """Is a stream of such an ending harmed, beside a whole direct one? Where the ending alone tells, it is."""
        del via, direct, undo
        return True

    def obstacles(self, targets: tuple[Target, ...], /) -> tuple[str, ...]:
        """A target must serve streams."""
        return tuple(
            f"{t.name}: a {t.role} serves no token streams; choose a target of role {' or '.join(ENGINE_ROLES)}"
            for t in targets
            if t.role not in ENGINE_ROLES
        )

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """The names by which the observer will ask, and for how much. Raises CannotInject."""
        models = {target.name: await served_model(target, host) for target in targets}
        return {"after_events": getattr(self, "after_events", 0), "models": models, "later_s": 0.0}

    def question(self, model: str, tokens: int) -> tuple[str, dict[str, Any]]:
        """Route and body of what the observer asks."""
        body = {"model": model, "prompt": "ping", "max_tokens": tokens, "min_tokens": tokens, "stream": True}
        return "/v1/completions", body

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The observer's stream through the edge is harmed, a direct one is whole."""
        via = await self.heard(grip.via or grip.address, grip.name, undo, host)
        if via.ending not in self.endings:
            return Sighting(seen=False, what=f"{grip.name}: the observer's stream through {grip.via} was {via}")
        direct = await self.heard(grip.address, grip.name, undo, host)
        witness = await toxics.witness(grip, undo["toxic"], host)
        return Sighting(
            direct.ending == "whole" and self.harmed(via, direct, undo) and witness.seen,
            f"{grip.name}: the observer's stream through {grip.via} was {via}, a direct one {direct}; {witness.what}",
        )

    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The observer's stream through the edge is whole, and as good as a direct one where that matters."""
        via = await self.heard(grip.via or grip.address, grip.name, undo, host)
        well = via.ending == "whole"
        if well and "whole" in self.endings:
            well = not self.harmed(via, await self.heard(grip.address, grip.name, undo, host), undo)
        return Sighting(well, f"the observer's stream through {grip.via} was {via}")

    async def heard(self, address: str, name: str, undo: Undo, host: Host) -> Stream:
        """One stream, asked for at an address in the way that the toxic hits."""
        tokens = int(undo["after_events"]) + _MORE_TOKENS
        route, body = self.question(undo["models"][name], tokens)
        began = host.clock.now()
        url = toxics.observing(address, route, undo["toxic"])
        timeout_s = ANSWER_S + tokens * _TOKEN_S + float(undo["later_s"])
        reply = await host.http.call("POST", url, body, timeout_s=timeout_s)
        return Stream(ending_of(reply), _events(reply.body), host.clock.now() - began)


async def served_model(target: Target, host: Host) -> str:
    """What the engine says that it serves. Raises CannotInject."""
    reply = await host.http.call("GET", f"http://{target.address}/v1/models")
    if reply.status != 200:
        raise CannotInject(f"{target.name} does not say which model it serves: {told(reply)}; wait until it is ready")
    return str(json.loads(reply.body)["data"][0]["id"])


def ending_of(reply: HttpReply) -> Ending:
    """How the stream ended, read off the reply."""
    if reply.status != 200:
        word = (reply.error or "").partition(":")[0]
        known: dict[str, Ending] = {"timeout": "silent", "broken": "broken"}
        return known.get(word, "none") if reply.status == 0 else "none"
    events = [_read(event) for event in _events(reply.body)]
    if any("error" in event for event in events if event):
        return "failed"
    if None in events:
        return "garbled"
    if not _whole_call(events):
        return "cut call"
    return "whole" if f"{_DATA}{_DONE}" in reply.body else "truncated"


def calls_in(stream: Stream) -> bool:
    """Whether a tool is called in it."""
    return any('"tool_calls":[' in event.replace(" ", "") for event in stream.events)


def _events(body: str) -> tuple[str, ...]:
    """The data of all but [DONE]."""
    found = (line.removeprefix(_DATA) for line in body.split("\n") if line.startswith(_DATA))
    return tuple(data.rstrip("\r") for data in found if data.rstrip("\r") != _DONE)


def _read(event: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(event)
    except ValueError:
        return None
    return found if isinstance(found, dict) else {}


def _whole_call(events: list[Mapping[str, Any] | None]) -> bool:
    """Whether the arguments of the first tool call, if there is one, are JSON."""
    pieces = [
        str((call.get("function") or {}).get("arguments") or "")
        for event in events
        for choice in (event or {}).get("choices") or ()
        for call in (choice.get("delta") or {}).get("tool_calls") or ()
    ]
    return not pieces or _read("".join(pieces)) is not None
