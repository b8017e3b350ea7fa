"""The supervisor of a stack: what runs now, and the holds that keep a dead target from being started again.

A hold carries a mark of its own. Holds are a set: a target stays down until the last one is released, so faults that
overlap revert in any order. They live in the supervisor's memory; a supervisor that is gone holds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.grips.replies import nobody_there, told
from chaos.ports import Host


def _route(socket: str, target: str, verb: str) -> str:
    return f"unix://{socket}:/targets/{quote(target, safe='')}/{verb}"


async def look(socket: str, target: str, host: Host) -> Mapping[str, Any] | None:
    """The supervisor's present record of a target (`pids`, `state`, ...); None when it cannot be had."""
    reply = await host.http.call("GET", f"unix://{socket}:/status")
    if reply.status != 200:
        return None
    records: list[dict[str, Any]] = json.loads(reply.body)["targets"]
    return next((record for record in records if record["name"] == target), None)


async def hold(socket: str, target: str, mark: str, host: Host) -> None:
    """Keep the target from being started again. Raises CannotInject."""
    reply = await host.http.call("POST", _route(socket, target, "hold"), {"by": mark})
    if reply.status != 200:
        raise CannotInject(
            f"{target}: its supervisor at {socket} did not accept a hold: {told(reply)}; "
            "see with `brownout status` whether the stack is up"
        )


async def release(socket: str, target: str, mark: str, host: Host) -> None:
    """Drop the hold; safe to repeat. Raises RevertFailed."""
    reply = await host.http.call("POST", _route(socket, target, "release"), {"by": mark})
    if reply.status in (200, 404) or nobody_there(reply):
        return
    raise RevertFailed(
        f"{target}: its supervisor did not release hold {mark}: {told(reply)}; by hand: "
        f"curl --unix-socket '{socket}' -d '{json.dumps({'by': mark})}' "
        f"http://localhost/targets/{quote(target, safe='')}/release"
    )
