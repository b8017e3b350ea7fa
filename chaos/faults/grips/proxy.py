"""One listener of the fault proxy, driven over Toxiproxy's HTTP contract; a real Toxiproxy server serves as well.

A listener is on or off, but several faults may want it off at the same time. Each leaves a toxic of type `noop` that
carries its mark; whoever takes the last mark away turns the listener on again. The marks live where the harm lives, so
any process can revert, in any order, without knowing of the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.grips.replies import by_hand, nobody_there, told
from chaos.ports import Host, HttpReply

_DOWN_MARK = "down-for-"
_ROUNDS = 4
_ENABLE = '{"enabled": true}'


@dataclass(frozen=True)
class Listener:
    """A listener as an admin call saw it."""

    enabled: bool
    toxics: tuple[str, ...]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """From a proxy record of the contract."""
        return cls(bool(record["enabled"]), tuple(toxic["name"] for toxic in record.get("toxics") or ()))

    @property
    def down_marks(self) -> tuple[str, ...]:
        """Marks of the faults that want it off."""
        return tuple(name.removeprefix(_DOWN_MARK) for name in self.toxics if name.startswith(_DOWN_MARK))


@dataclass(frozen=True)
class Proxy:
    """The grip on one listener: the admin API's `host:port`, the listener's name there, and the file that lets us in,
    if the proxy demands one.
    """

    admin: str
    name: str
    token_file: str | None = None

    @classmethod
    def of(cls, handle: Mapping[str, Any]) -> Self:
        """From the handle `proxy` of a target, or from `to_json`."""
        return cls(handle["admin"], handle["name"], handle.get("token_file"))

    def to_json(self) -> dict[str, str | None]:
        """As it stands in `undo`."""
        return {"admin": self.admin, "name": self.name, "token_file": self.token_file}

    @property
    def url(self) -> str:
        """Of the listener."""
        return f"http://{self.admin}/proxies/{quote(self.name, safe='')}"

    def toxic_url(self, toxic: str) -> str:
        """Of one toxic on it."""
        return f"{self.url}/toxics/{quote(toxic, safe='')}"

    @property
    def _opening(self) -> str:
        """The command that turns it on."""
        return by_hand(f"-d '{_ENABLE}' {self.url}", self.token_file)

    async def _call(self, method: str, url: str, host: Host, body: Any = None) -> HttpReply:
        return await host.http.call(method, url, body, token_file=self.token_file)

    async def counts(self, host: Host) -> Mapping[str, Any] | None:
        """What each toxic on it has touched, by name; None when the proxy does not count: Toxiproxy does not."""
        reply = await self._call("GET", f"http://{self.admin}/brownout/hits", host)
        if reply.status == 404:
            return None
        listeners = json.loads(reply.body) if reply.status == 200 else {}
        found: Mapping[str, Any] = listeners.get(self.name, {}).get("toxics", {})
        return found

    async def look(self, host: Host) -> Listener | None:
        """Its present state; None when the proxy does not answer or does not know it."""
        reply = await self._call("GET", self.url, host)
        return Listener.from_json(json.loads(reply.body)) if reply.status == 200 else None

    async def listener(self, host: Host) -> Listener:
        """Its present state. Raises CannotInject."""
        reply = await self._call("GET", self.url, host)
        return Listener.from_json(self._accepted(reply, "show its state"))

    async def must_be_up(self, host: Host) -> None:
        """Raises CannotInject when it was closed by hand: a revert would open it against that person's will."""
        seen = await self.listener(host)
        if not seen.enabled and not seen.down_marks:
            raise CannotInject(
                f"proxy {self.name} at {self.admin} is down already, by hand; enable it first: {self._opening}"
            )

    async def add_toxic(self, toxic: Mapping[str, Any], host: Host) -> None:
        """Add a toxic. Raises CannotInject."""
        self._accepted(await self._call("POST", f"{self.url}/toxics", host, dict(toxic)), f"add toxic {toxic['name']}")

    async def remove_toxic(self, toxic: str, host: Host) -> None:
        """Remove a toxic; safe to repeat. Raises RevertFailed."""
        reply = await self._call("DELETE", self.toxic_url(toxic), host)
        if reply.status not in (204, 404) and not nobody_there(reply):
            command = by_hand(f"-X DELETE {self.toxic_url(toxic)}", self.token_file)
            raise RevertFailed(f"proxy {self.name}: toxic {toxic} was not removed: {told(reply)}; by hand: {command}")

    async def take_down(self, mark: str, host: Host) -> None:
        """Leave the mark, then close the listener and its connections. Raises CannotInject."""
        await self.add_toxic(
            {"name": _DOWN_MARK + mark, "type": "noop", "stream": "downstream", "attributes": {}}, host
        )
        self._accepted(await self._enable(host, enabled=False), "go down")

    async def bring_up(self, mark: str, host: Host) -> None:
        """Take the mark away and listen again unless another mark is left; safe to repeat. Raises RevertFailed.

        What is told of the listener once it is on is looked at too: a fault that left its mark in between must find it
        off.
        """
        await self.remove_toxic(_DOWN_MARK + mark, host)
        reply = await self._call("GET", self.url, host)
        for _ in range(_ROUNDS):
            if reply.status == 404 or nobody_there(reply):
                return
            if reply.status == 200:
                seen = Listener.from_json(json.loads(reply.body))
                if seen.enabled != bool(seen.down_marks):
                    return
                reply = await self._enable(host, enabled=not seen.down_marks)
            else:
                reply = await self._call("GET", self.url, host)
        raise RevertFailed(f"proxy {self.name} is still down: {told(reply)}; by hand: {self._opening}")

    async def _enable(self, host: Host, *, enabled: bool) -> HttpReply:
        # POST is the form of the call that every released Toxiproxy knows.
        return await self._call("POST", self.url, host, {"enabled": enabled})

    def _accepted(self, reply: HttpReply, wish: str) -> Mapping[str, Any]:
        if reply.status not in (200, 201):
            raise CannotInject(
                f"proxy {self.name} at {self.admin} would not {wish}: {told(reply)}; "
                "see with `brownout status` whether the stack is up"
            )
        record: Mapping[str, Any] = json.loads(reply.body)
        return record
