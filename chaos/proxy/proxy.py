"""One named proxy: a listening address, an upstream, toxics, and the connections that are open now."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.proxy.address import listen, resolve
from chaos.proxy.connection import Connection, Traffic
from chaos.proxy.gojson import encode
from chaos.proxy.reactor import READ, Reactor, Timer
from chaos.proxy.toxic import Direction, Toxic
from chaos.proxy.toxics.per_request import PerRequest

_ACCEPTS_PER_ROUND = 64
_PAUSE_S = 0.1  # when there are no descriptors left


@dataclass
class Surroundings:
    """What all proxies of a server share. `strict`: also do what Toxiproxy does wrong with data (command.py)."""

    reactor: Reactor
    seed: int
    strict: bool
    count: Callable[[Proxy, Traffic], None]
    _toxics: int = 0

    def toxics_changed(self, by: int) -> None:
        """So many more are in force; while there are any, the loop keeps time exactly."""
        self._toxics += by
        self.reactor.exact = self._toxics > 0


@dataclass(eq=False)
class Proxy:
    """Off until `start`. `listen` becomes the real address when a port was left to the system."""

    around: Surroundings
    name: str
    listen: str
    upstream: str
    enabled: bool = False
    toxics: dict[Direction, list[Toxic]] = field(default_factory=lambda: {"upstream": [], "downstream": []})
    accepted: int = 0
    connections: set[Connection] = field(default_factory=set)
    _listener: socket.socket | None = None
    _expiries: dict[Toxic, Timer] = field(default_factory=dict)

    @property
    def strict(self) -> bool:
        """See Surroundings."""
        return self.around.strict

    def start(self) -> None:
        """Listen. Nothing happens when it does already. Raises AddressError."""
        if self.enabled:
            return
        self._listener, self.listen = listen(self.listen)
        self.around.reactor.register(self._listener.fileno(), READ, self._on_ready)
        self.enabled = True

    def stop(self) -> None:
        """Close the listener, then every connection. New ones are refused from now on."""
        self.enabled = False
        if self._listener:
            self._unwatch()
            self._listener.close()
            self._listener = None
        for connection in tuple(self.connections):
            connection.close()

    def differs(self, listen_: str, upstream: str) -> bool:
        """Whether these addresses are others than those in use. Raises AddressError for one that cannot be read."""
        return self.listen != str(resolve(listen_)) or self.upstream != upstream

    def update(self, listen_: str, upstream: str, *, enabled: bool) -> None:
        """Change addresses (which drops all connections) or turn on and off.

        Raises AddressError: unreadable addresses change nothing, one that cannot be bound stays, with the proxy off.
        """
        if self.differs(listen_, upstream):
            self.stop()
            self.listen = listen_
            self.upstream = upstream
        if enabled:
            self.start()
        else:
            self.stop()

    def _unwatch(self) -> None:
        if self._listener:
            self.around.reactor.unregister(self._listener.fileno(), READ)

    def _on_ready(self, _events: int) -> None:
        for _ in range(_ACCEPTS_PER_ROUND):
            if self._listener is None:
                return
            try:
                client, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as problem:
                self._on_accept_failed(problem)
                return
            client.setblocking(False)
            self._open(client)

    def _on_accept_failed(self, problem: OSError) -> None:
        """A client that is gone again is no matter; without free descriptors the listener rests, or it would spin."""
        if problem.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            return
        reactor, resting = self.around.reactor, self._listener
        if resting is None:
            return
        reactor.modify(resting.fileno(), READ, 0)

        def resume() -> None:
            if self._listener is resting:
                reactor.modify(resting.fileno(), 0, READ)

        reactor.call_at(reactor.now() + _PAUSE_S, resume)

    def _open(self, client: socket.socket) -> None:
        self.accepted += 1
        number = self.accepted

        def dice(toxic: Toxic) -> random.Random:
            # One stream per toxic and connection: what one of them draws never shifts another's draws. For single
            # requests one per toxic: the n-th that matches gets the n-th draw, whatever connection carries it.
            if isinstance(toxic.attributes, PerRequest):
                return toxic.dice
            return random.Random(f"{self.around.seed}/{self.name}/{number}/{toxic.direction}/{toxic.name}")

        self.connections.add(Connection(self.around.reactor, self, client, dice))

    def toxics_of(self, direction: Direction) -> list[Toxic]:
        """In order of addition."""
        return self.toxics[direction]

    def all_toxics(self) -> list[Toxic]:
        """As listed: upstream first."""
        return [*self.toxics["upstream"], *self.toxics["downstream"]]

    def find(self, name: str) -> Toxic | None:
        """The toxic of this name in either direction."""
        return next((toxic for toxic in self.all_toxics() if toxic.name == name), None)

    def add(self, toxic: Toxic) -> None:
        """To the end of its chain, at once on every open connection."""
        toxic.dice.seed(f"{self.around.seed}/{self.name}/{toxic.direction}/{toxic.name}")
        self.toxics[toxic.direction].append(toxic)
        self.around.toxics_changed(+1)
        self.set_expiry(toxic, toxic.expires_ms)
        for connection in tuple(self.connections):
            connection.add(toxic)

    def changed(self, toxic: Toxic) -> None:
        """Its settings are others now: open connections take note."""
        for connection in tuple(self.connections):
            connection.change(toxic)

    def remove(self, toxic: Toxic) -> None:
        """Out of its chain, at once on every open connection."""
        self.set_expiry(toxic, 0)
        self.toxics[toxic.direction].remove(toxic)
        self.around.toxics_changed(-1)
        for connection in tuple(self.connections):
            connection.remove(toxic)

    def set_expiry(self, toxic: Toxic, expires_ms: int) -> None:
        """Remove it so many milliseconds from now, whoever may have died meanwhile; 0 (and less) is never."""
        toxic.expires_ms = expires_ms
        if timer := self._expiries.pop(toxic, None):
            timer.cancel()
        if expires_ms > 0:
            when = self.around.reactor.now() + expires_ms / 1e3
            self._expiries[toxic] = self.around.reactor.call_at(when, lambda: self.remove(toxic))

    def remove_all(self) -> None:
        """No toxic is left."""
        for toxic in reversed(self.all_toxics()):
            self.remove(toxic)

    def link_ended(self, traffic: Traffic) -> None:
        """See connection.Owner."""
        self.around.count(self, traffic)

    def connection_ended(self, connection: Connection) -> None:
        """See connection.Owner."""
        self.connections.discard(connection)

    def to_json(self) -> str:
        """As the API shows it. The empty Logger is an accident of Toxiproxy that clients see."""
        toxics = ",".join(toxic.to_json() for toxic in self.all_toxics())
        return (
            f'{{"name":{encode(self.name)},"listen":{encode(self.listen)},"upstream":{encode(self.upstream)},'
            f'"enabled":{encode(self.enabled)},"Logger":{{}},"toxics":[{toxics}]}}'
        )
