"""The supervisor of a stack: what runs now, and the holds that keep a dead target from being started again.

A hold carries a mark of its own. Holds are a set: a target stays down until the last one is released, so faults that
overlap revert in any order. A burden makes the target's further lives harder in some way, and carries a mark as well.
All live in the supervisor's memory; a supervisor that is gone holds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.grips.replies import nobody_there, told
from chaos.inventory import Target
from chaos.ports import Host


class Supervised(Protocol):
    """A grip on a target, as far as its supervisor must know it."""

    @property
    def name(self) -> str:
        """Of the target."""
        ...

    @property
    def supervisor(self) -> str | None:
        """Path of the supervisor's socket."""
        ...


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


async def lay(socket: str, target: str, mark: str, burden: Mapping[str, Any], host: Host) -> None:
    """Lay a burden on the target's further lives: `start_delay_s`, `life_s` and `deaths`, `settings`. Raises
    CannotInject.
    """
    reply = await host.http.call("POST", _route(socket, target, "burden"), {"by": mark, **burden})
    if reply.status != 200:
        raise CannotInject(
            f"{target}: its supervisor at {socket} did not accept a burden: {told(reply)}; "
            "see with `brownout status` whether the stack is up"
        )


async def hold_all(grips: Iterable[Supervised], mark: str, host: Host) -> None:
    """Hold each. Raises CannotInject."""
    for grip in grips:
        if grip.supervisor:
            await hold(grip.supervisor, grip.name, mark, host)


def releases(grips: Iterable[Supervised], mark: str, host: Host) -> list[Coroutine[Any, Any, None]]:
    """A release for each, to be run together."""
    return [release(grip.supervisor, grip.name, mark, host) for grip in grips if grip.supervisor]


def without(targets: tuple[Target, ...], why: str) -> tuple[str, ...]:
    """A sentence for each target that has no supervisor to do what `why` names."""
    return tuple(
        f"{t.name}: nothing could {why}, as it has no supervisor handle; name the supervisor's socket in the inventory"
        for t in targets
        if not t.handles.get("supervisor")
    )


def marks_in(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Marks of all holds and burdens in a supervisor's record."""
    return (*record.get("holds", ()), *record.get("burdens", ())) if record else ()


async def release(socket: str, target: str, mark: str, host: Host) -> None:
    """Drop the hold or burden; safe to repeat. Raises RevertFailed."""
    reply = await host.http.call("POST", _route(socket, target, "release"), {"by": mark})
    if reply.status in (200, 404) or nobody_there(reply):
        return
    raise RevertFailed(
        f"{target}: its supervisor did not release {mark}: {told(reply)}; by hand: "
        f"curl --unix-socket '{socket}' -d '{json.dumps({'by': mark})}' "
        f"http://localhost/targets/{quote(target, safe='')}/release"
    )
