"""Who listens where: one direct port per target and, behind the proxy, one more that clients use.

A port that turns out to be taken is drawn again; nobody but this book knows a number by heart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from target_stack.port_numbers import draw_port, is_free


def _loopback(port: int) -> str:
    return f"127.0.0.1:{port}"


class AddressBook:
    """The ports of all targets, of the edges in front of them, and of the proxy's admin API."""

    def __init__(
        self, targets: Iterable[str], proxy: str | None, dice: random.Random, free: Callable[[int], bool] = is_free
    ) -> None:
        """Draw all of them. `proxy` is the proxy's name, or None for a stack without one. Raises NoFreePort."""
        self._dice, self._free = dice, free
        self._direct: dict[str, int] = {}
        self._edges: dict[str, int] = {}
        self._elsewhere: dict[str, str] = {}
        for name in targets:
            self.move(name)
            if proxy:
                self.move_edge(name)
        if proxy:
            self.move(proxy)

    def _draw(self) -> int:
        return draw_port(self._dice, {*self._direct.values(), *self._edges.values()}, self._free)

    def move(self, name: str) -> None:
        """Draw another direct port."""
        self._direct[name] = self._draw()

    def move_edge(self, name: str) -> None:
        """Draw another port for the edge in front of a target."""
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
        """`host:port` through the proxy, if there is one."""
        return _loopback(self._edges[name]) if name in self._edges else None

    def for_clients(self) -> dict[str, str]:
        """The address that a target's clients shall use, by name."""
        return {name: self.via(name) or self.direct(name) for name in self._direct}

    def routes(self) -> list[dict[str, Any]]:
        """All edges as Toxiproxy's `/populate` takes them."""
        return [
            {"name": name, "listen": _loopback(port), "upstream": self.direct(name), "enabled": True}
            for name, port in self._edges.items()
        ]
