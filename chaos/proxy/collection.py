"""All proxies of one server by name, and what may be done to several of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.proxy.address import AddressError
from chaos.proxy.proxy import Proxy, Surroundings


@dataclass(frozen=True)
class Wanted:
    """A proxy as a client describes it."""

    name: str
    listen: str
    upstream: str
    enabled: bool


class Collection:
    """Names are unique."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._proxies: dict[str, Proxy] = {}

    def get(self, name: str) -> Proxy | None:
        """The proxy of this name."""
        return self._proxies.get(name)

    def all(self) -> tuple[Proxy, ...]:
        """In order of their names."""
        return tuple(self._proxies[name] for name in sorted(self._proxies))

    def create(self, wanted: Wanted) -> Proxy:
        """Make and, if wanted, start one. Raises AddressError, and then nothing is made."""
        proxy = self._new(wanted)
        self._proxies[proxy.name] = proxy
        return proxy

    def populate(self, wanted: Iterable[Wanted]) -> tuple[list[Proxy], AddressError | None]:
        """Make or replace one after the other up to the first that fails. One with the same addresses is left alone."""
        done: list[Proxy] = []
        for each in wanted:
            try:
                done.append(self._create_or_replace(each))
            except AddressError as problem:
                return done, problem
        return done, None

    def _create_or_replace(self, wanted: Wanted) -> Proxy:
        existing = self._proxies.get(wanted.name)
        if existing:
            if not existing.differs(wanted.listen, wanted.upstream):
                return existing
            existing.stop()
        made = self.create(wanted)
        if existing:
            existing.remove_all()
        return made

    def _new(self, wanted: Wanted) -> Proxy:
        proxy = Proxy(self._around, wanted.name, wanted.listen, wanted.upstream)
        if wanted.enabled:
            proxy.start()
        return proxy

    def remove(self, proxy: Proxy) -> None:
        """Stop and forget it."""
        del self._proxies[proxy.name]
        proxy.stop()
        proxy.remove_all()

    def reset(self) -> None:
        """Turn every proxy on and take every toxic away. Stops with AddressError at the first that cannot listen."""
        for proxy in self._proxies.values():
            proxy.start()
            proxy.remove_all()

    def stop(self) -> None:
        """Stop all."""
        for proxy in self._proxies.values():
            proxy.stop()
