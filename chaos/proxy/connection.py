"""One client, one upstream, and the two links between them.

A link without toxics copies through one shared buffer and makes no objects; the first toxic turns it into a chain.
Reading stops while a receiver is full, so memory per connection is bounded by the chain.

    client Side ──read──► Link up   ──write──► server Side
    client Side ◄──write── Link down ◄──read── server Side
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from chaos.proxy.chain import Chain
from chaos.proxy.dial import Dial
from chaos.proxy.reactor import Reactor, Timer
from chaos.proxy.side import Side
from chaos.proxy.toxic import DIRECTIONS, Direction, Toxic
from chaos.proxy.toxics.per_request import PerRequest
from chaos.proxy.toxics.stub import End, Item, Stub
from chaos.proxy.traffic.exchange import Exchange

_BUFFER = bytearray(256 * 1024)  # the loop has one thread, and what is left over is copied out at once
_VIEW = memoryview(_BUFFER)
_AT_ONCE = 256 * 1024  # then the others have their turn
Dice = Callable[[Toxic], random.Random]


@dataclass(frozen=True)
class Traffic:
    """What passed one link in its life."""

    direction: Direction
    received: int
    sent: int


class Owner(Protocol):
    """What a connection needs of its proxy."""

    upstream: str

    @property
    def strict(self) -> bool:
        """Also do what Toxiproxy does wrong."""
        ...

    def toxics_of(self, direction: Direction) -> list[Toxic]:
        """The toxics in force, in order."""
        ...

    def link_ended(self, traffic: Traffic) -> None:
        """A link is done."""
        ...

    def connection_ended(self, connection: Connection) -> None:
        """Both sockets are closed."""
        ...


class Link:
    """One direction: reads `source`, passes the chain, writes `sink`."""

    __slots__ = ("_timer", "chain", "connection", "direction", "exhausted", "received", "sent", "sink", "source")

    def __init__(self, connection: Connection, direction: Direction, source: Side, sink: Side) -> None:
        self.connection = connection
        self.direction = direction
        self.source = source
        self.sink = sink
        self.received = 0
        self.sent = 0
        self.exhausted = False  # the source has said its last word
        self._timer: Timer | None = None
        source.reads = self
        sink.writes = self
        fit = partial(connection.fit, direction)
        self.chain = Chain(connection.reactor.now(), connection.toxics_of(direction), fit, self._deliver)

    @property
    def reading(self) -> bool:
        """Whether the source should be read."""
        return not self.exhausted and self.chain.room

    def pull(self) -> None:
        """Read once and pass it on. Without toxics this is the whole cost of the proxy, so it is written for speed."""
        chain = self.chain
        if chain.stages or chain.tail:
            self._pull_chunks()
            return
        try:
            count = self.source.recv_into(_BUFFER)
        except BlockingIOError:
            return
        except OSError:
            self.finish(End.CLOSE)
            return
        if not count:
            self.finish(End.FIN)
            return
        self.received += count
        self.sent += count
        try:
            sent = self.sink.send(_VIEW[:count])
        except BlockingIOError:
            sent = 0
        except OSError:
            self.connection.on_link_ended(self, End.CLOSE)
            return
        if sent < count:
            self.sink.unsent = bytes(_VIEW[sent:count])
            chain.blocked = True
            self.settle()

    def _pull_chunks(self) -> None:
        """A sender with much to say is read a few times in a row: asking the loop in between costs as much."""
        left = _AT_ONCE
        while left > 0:
            grain = self.chain.grain
            try:
                data = self.source.sock.recv(grain)
            except BlockingIOError:
                break
            except OSError:
                self.finish(End.CLOSE)
                return
            if not data:
                self.finish(End.FIN)
                return
            self.received += len(data)
            self.chain.feed(self.connection.reactor.now(), data)
            if len(data) < grain or not self.reading:
                break
            left -= grain
        self.settle()

    def finish(self, end: End) -> None:
        """The source has no more. Repeatable."""
        if not self.exhausted:
            self.exhausted = True
            self.chain.feed(self.connection.reactor.now(), end)
            self.settle()

    def flush(self) -> None:
        """The sink can be written again."""
        try:
            done = self.sink.write(self.sink.unsent)
        except OSError:
            self.connection.on_link_ended(self, End.CLOSE)
            return
        if done:
            self.chain.resume(self.connection.reactor.now())
            self.settle()

    def settle(self) -> None:
        """After the chain has moved: set the timer, and watch the sockets for what is wanted now."""
        due = self.chain.due
        if self._timer and self._timer.when != due:
            self._timer.cancel()
            self._timer = None
        if due is not None and self._timer is None:
            self._timer = self.connection.reactor.call_at(due, self._on_timer)
        self.source.watch()
        if bool(self.sink.unsent) is not self.sink.writing:
            self.sink.watch()

    def _on_timer(self) -> None:
        self._timer = None
        self.chain.advance(self.connection.reactor.now())
        self.settle()

    def _deliver(self, item: Item) -> bool:
        if isinstance(item, End):
            self.connection.on_link_ended(self, item)
            return True
        try:
            done = self.sink.write(item)
        except OSError:
            self.connection.on_link_ended(self, End.CLOSE)
            return True
        self.sent += len(item)
        return done

    def stop(self) -> Traffic:
        """No more timers. What was held is dropped."""
        self.exhausted = True
        self.chain.ended = True
        if self._timer:
            self._timer.cancel()
            self._timer = None
        return Traffic(self.direction, self.received, self.sent)


class Connection:
    """Born with the accepted client; dials; lives until both sockets are closed."""

    def __init__(self, reactor: Reactor, owner: Owner, client: socket.socket, dice: Dice) -> None:
        self.reactor = reactor
        self.owner = owner
        self.dice = dice
        self.links: tuple[Link, ...] = ()
        self._client = client
        self._sides: tuple[Side, ...] = ()
        self._done: set[Link] = set()
        self._may_reset = False
        self._exchanges: dict[Toxic, Exchange] = {}
        self._dial = Dial(reactor, owner.upstream, self._on_connected)

    def _on_connected(self, server: socket.socket | None) -> None:
        if server is None:
            self.close()
            return
        client_side, server_side = Side(self.reactor, self._client), Side(self.reactor, server)
        self._sides = (client_side, server_side)
        toxics = [toxic for direction in DIRECTIONS for toxic in self.owner.toxics_of(direction)]
        # As in Toxiproxy, only connections opened under such a toxic can be reset; strict resets all of them (#603).
        self._may_reset = any(toxic.attributes.resets for toxic in toxics)
        if self._may_reset and self.owner.strict:
            self._reset_on_close()
        up = Link(self, "upstream", client_side, server_side)
        down = Link(self, "downstream", server_side, client_side)
        self.links = (up, down)
        for link in self.links:
            link.settle()

    def link(self, direction: Direction) -> Link | None:
        """The link of one direction, while it lives."""
        return next((link for link in self.links if link.direction == direction and link not in self._done), None)

    def on_link_ended(self, link: Link, end: End) -> None:
        """The last item of a link has reached its sink. FIN ends one direction; the others end the connection."""
        if link in self._done:
            return
        self._done.add(link)
        self.owner.link_ended(link.stop())
        if end is End.ABORT or (end is End.RESET and self._may_reset):
            self._reset_on_close()
        other = next(each for each in self.links if each is not link)
        if end is End.FIN and not self.owner.strict and other not in self._done:
            link.sink.shut_down()
            link.source.watch()
            return
        link.sink.close()
        if other in self._done:
            link.source.close()
            self.owner.connection_ended(self)
        else:
            link.source.watch()
            other.finish(End.CLOSE)

    def toxics_of(self, direction: Direction) -> list[Toxic]:
        """Those with a stage on this link, in order.

        One that knows HTTP stands on both: what is nearest to the client on the way down is so on the way up.
        """
        own = self.owner.toxics_of(direction)
        if direction == "downstream":
            return own
        watching = [toxic for toxic in self.owner.toxics_of("downstream") if _knows_http(toxic)]
        return [*reversed(watching), *own]

    def fit(self, direction: Direction, toxic: Toxic) -> tuple[random.Random, Stub]:
        """See chain.Fit."""
        dice = self.dice(toxic)
        if not isinstance(toxic.attributes, PerRequest):
            return dice, toxic.attributes.stub(dice)
        if toxic not in self._exchanges:
            self._exchanges[toxic] = Exchange(toxic, toxic.attributes, dice, self._wake_soon)
        exchange = self._exchanges[toxic]
        return dice, exchange.up if direction == "upstream" else exchange.down

    def add(self, toxic: Toxic) -> None:
        """A toxic was added: it stands last in its direction."""
        now = self.reactor.now()
        if _knows_http(toxic) and (link := self.link("upstream")):
            link.chain.prepend(now, toxic)
        if link := self.link(toxic.direction):
            link.chain.append(now, toxic)
            link.settle()

    def change(self, toxic: Toxic) -> None:
        """The settings of a toxic are others now."""
        if link := self.link(toxic.direction):
            link.chain.update(self.reactor.now(), toxic)
            link.settle()

    def remove(self, toxic: Toxic) -> None:
        """A toxic was removed."""
        now = self.reactor.now()
        self._exchanges.pop(toxic, None)
        for direction in DIRECTIONS:
            if link := self.link(direction):
                link.chain.remove(now, toxic, close_untouched=self.owner.strict)
                link.settle()

    def _wake_soon(self) -> None:
        """In the loop's next round: one chain must not move while it moves the other."""
        self.reactor.call_at(self.reactor.now(), self._wake)

    def _wake(self) -> None:
        if link := self.link("downstream"):
            link.chain.wake(self.reactor.now())
            link.settle()

    def _reset_on_close(self) -> None:
        for side in self._sides:
            side.reset_on_close()

    def close(self) -> None:
        """Close both sockets now; what is in flight is lost."""
        self._dial.cancel()
        for link in self.links:
            if link not in self._done:
                self._done.add(link)
                self.owner.link_ended(link.stop())
        for side in self._sides:
            side.close()
        self._client.close()
        self.owner.connection_ended(self)


def _knows_http(toxic: Toxic) -> bool:
    return isinstance(toxic.attributes, PerRequest)
