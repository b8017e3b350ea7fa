"""Who listens where: one direct port per target and, before it at the proxy, one for the callers of each role.

A port that turns out to be taken is drawn again; nobody but this book knows a number by heart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from target_stack.edges import Edge
from target_stack.port_numbers import draw_port, is_free


def _loopback(port: int) -> str:
    return f"127.0.0.1:{port}"


class AddressBook:
    """The ports of all targets, of the edges in front of them, and of the proxy's admin API."""

    def __init__(
        self,
        targets: Iterable[str],
        edges: Iterable[Edge],
        proxy: str | None,
        dice: random.Random,
        free: Callable[[int], bool] = is_free,
    ) -> None:
        """Draw all of them. `proxy` is the proxy's name, or None for a stack without one. Raises NoFreePort."""
        self._dice, self._free = dice, free
        self._direct: dict[str, int] = {}
        self._edges: dict[str, int] = {}
        self._elsewhere: dict[str, str] = {}
        self._lead = {edge.name: edge for edge in edges} if proxy else {}
        for name in targets:
            self.move(name)
        for name in self._lead:
            self.move_edge(name)
        if proxy:
            self.move(proxy)

    def _draw(self) -> int:
        return draw_port(self._dice, {*self._direct.values(), *self._edges.values()}, self._free)

    def move(self, name: str) -> None:
        """Draw another direct port."""
        self._direct[name] = self._draw()

    def move_edge(self, name: str) -> None:
        """Draw another port for an edge."""
        self._edges[name] = self._draw()

    def place(self, name: str, address: str) -> None:
        """A part that somebody else runs answers there."""
        self._elsewhere[name] = address

    def port(self, name: str) -> int:
        """The direct port."""
        return self._direct[name]

    def direct(self, name: str) -> str:
        """`host:port` of the part itself."""
        return self._elsewhere.get(name) or _loopback(self._direct[name])

    def via(self, name: str) -> str | None:
        """`host:port` of an edge, if there is a proxy; a target's first callers use the one of its name."""
        return _loopback(self._edges[name]) if name in self._edges else None

    def edges(self, target: str) -> tuple[tuple[Edge, str], ...]:
        """All edges that lead to a target, each with its `host:port`."""
        return tuple((edge, _loopback(self._edges[edge.name])) for edge in self._lead.values() if edge.target == target)

    def for_clients(self, role: str) -> dict[str, str]:
        """The address of each target, by name, that callers of a role shall use."""
        theirs = {edge.target: self.via(edge.name) for edge in self._lead.values() if edge.caller == role}
        return {name: theirs.get(name) or self.via(name) or self.direct(name) for name in self._direct}

    def routes(self) -> list[dict[str, Any]]:
        """All edges as Toxiproxy's `/populate` takes them."""
        return [
            {
                "name": name,
                "listen": _loopback(port),
                "upstream": self.direct(self._lead[name].target),
                "enabled": True,
            }
            for name, port in self._edges.items()
        ]
