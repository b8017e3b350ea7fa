"""A token stream of the observer's own: asked for, read to its end, and how it ended.

It is a question of a few tokens (`POST /v1/completions`), so asking it changes nothing but the load by one.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from chaos.faults.fault import CannotInject, Sighting
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.replies import told
from chaos.inventory import Target
from chaos.ports import Host, HttpReply

Ending = Literal["whole", "failed", "broken", "truncated", "silent", "none"]
"""whole: with its [DONE]; failed: an error frame, whatever follows it; broken: inside its body; truncated: valid HTTP
without [DONE]; silent: no end in time.
"""

_MORE_TOKENS = 4  # than pass before the harm, so that there is something to harm
_TOKEN_S = 0.1  # a token that takes longer is no sign of health
_ENGINES = ("engine", "fallback-engine")


def not_streaming(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Why streams cannot be harmed: a sentence for each target that serves none."""
    return tuple(
        f"{t.name}: a {t.role} serves no token streams; choose a target of role {' or '.join(_ENGINES)}"
        for t in targets
        if t.role not in _ENGINES
    )


async def served_model(target: Target, host: Host) -> str:
    """The name by which the observer will ask. Raises CannotInject."""
    reply = await host.http.call("GET", f"http://{target.address}/v1/models")
    if reply.status != 200:
        raise CannotInject(f"{target.name} does not say which model it serves: {told(reply)}; wait until it is ready")
    return str(json.loads(reply.body)["data"][0]["id"])


async def seen_ending(grip: Grip, undo: Any, wanted: frozenset[Ending], host: Host) -> Sighting:
    """Does a stream through the edge end in a wanted way, a direct one whole, and has the toxic counted a hit?"""
    via = await _ending(grip.via or grip.address, grip, undo, host)
    direct = await _ending(grip.address, grip, undo, host) if via in wanted else "none"
    hit = await toxics.hits(grip, undo["toxic"], host)
    return Sighting(
        via in wanted and direct == "whole" and hit > 0,
        f"{grip.name}: the observer's stream through {grip.via} ended {via}, a direct one {direct}; "
        f"the toxic has hit {hit} requests",
    )


async def seen_whole(grip: Grip, undo: Any, host: Host) -> Sighting:
    """Is the toxic absent and a stream through the edge whole?"""
    ending = await _ending(grip.via or grip.address, grip, undo, host)
    works = Sighting(ending == "whole", f"the observer's stream through {grip.via} ended {ending}")
    return await toxics.seen_absent(grip, undo["toxic"], works, host)


async def _ending(address: str, grip: Grip, undo: Any, host: Host) -> Ending:
    tokens = undo["after_events"] + _MORE_TOKENS
    question = {
        "model": undo["models"][grip.name],
        "prompt": "ping",
        "max_tokens": tokens,
        "min_tokens": tokens,
        "stream": True,
    }
    url = toxics.observing(address, "/v1/completions", undo["toxic"])
    return ending_of(await host.http.call("POST", url, question, timeout_s=ANSWER_S + tokens * _TOKEN_S))


def ending_of(reply: HttpReply) -> Ending:
    """How the stream ended, read off the reply."""
    if reply.status == 200 and 'data: {"error":' in reply.body:
        return "failed"
    if reply.status == 200:
        return "whole" if "data: [DONE]" in reply.body else "truncated"
    word = (reply.error or "").partition(":")[0]
    known: dict[str, Ending] = {"timeout": "silent", "broken": "broken"}
    return known.get(word, "none") if reply.status == 0 else "none"
