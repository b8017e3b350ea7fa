"""Both directions of one connection in virtual time, and the small HTTP that the tests speak over it."""

from __future__ import annotations

import itertools
import random

from chaos.proxy.chain import Chain
from chaos.proxy.toxic import Direction, Toxic
from chaos.proxy.toxics.per_request import PerRequest
from chaos.proxy.toxics.stub import End, Item, Stub
from chaos.proxy.traffic.exchange import Exchange

REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: e\r\nX-Tenant: blue\r\nContent-Length: 2\r\n\r\n{}"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\ntrue"
EVENTS = [b'data: {"n": %d}\n\n' % n for n in (1, 2, 3)] + [b"data: [DONE]\n\n"]
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"


def chunked(*payloads: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in payloads) + b"0\r\n\r\n"


def stream(*payloads: bytes) -> bytes:
    """A token stream, a chunk for each payload."""
    return STREAM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(*payloads)


class Duplex:
    """What has left towards the client (`down`) and the upstream (`up`), as [(time, item)]."""

    def __init__(self, *toxics: Toxic, seed: int = 1) -> None:
        self.now = 0.0
        self.up: list[tuple[float, Item]] = []
        self.down: list[tuple[float, Item]] = []
        self._exchanges: dict[Toxic, Exchange] = {}
        self._woken = False
        for toxic in toxics:
            toxic.dice.seed(seed)
        self.chains: dict[Direction, Chain] = {
            "upstream": Chain(0, list(reversed(toxics)), self._fit_up, lambda item: self._arrived(self.up, item)),
            "downstream": Chain(0, list(toxics), self._fit_down, lambda item: self._arrived(self.down, item)),
        }

    def add(self, toxic: Toxic) -> None:
        self.chains["upstream"].prepend(self.now, toxic)
        self.chains["downstream"].append(self.now, toxic)

    def remove(self, toxic: Toxic) -> None:
        for chain in self.chains.values():
            chain.remove(self.now, toxic, close_untouched=False)

    def ask(self, data: Item = REQUEST) -> None:
        """The client sends."""
        self._feed("upstream", data)

    def answer(self, data: Item) -> None:
        """The upstream sends."""
        self._feed("downstream", data)

    def run_until(self, when: float) -> None:
        chain = self.chains["downstream"]
        while (due := chain.due) is not None and due <= when:
            self.now = max(self.now, due)
            chain.advance(self.now)
        self.now = when
        chain.advance(when)

    def seen(self) -> bytes:
        """By the client."""
        return b"".join(item for _, item in self.down if isinstance(item, bytes))

    def sent(self) -> bytes:
        """To the upstream."""
        return b"".join(item for _, item in self.up if isinstance(item, bytes))

    def endings(self) -> list[End]:
        return [item for _, item in self.down if isinstance(item, End)]

    def _feed(self, direction: Direction, data: Item) -> None:
        self.chains[direction].feed(self.now, data)
        if self._woken:
            self._woken = False
            self.chains["downstream"].wake(self.now)

    def _arrived(self, where: list[tuple[float, Item]], item: Item) -> bool:
        where.append((self.now, item))
        return True

    def _fit_up(self, toxic: Toxic) -> tuple[random.Random, Stub]:
        return toxic.dice, self._exchange(toxic).up

    def _fit_down(self, toxic: Toxic) -> tuple[random.Random, Stub]:
        return toxic.dice, self._exchange(toxic).down

    def _exchange(self, toxic: Toxic) -> Exchange:
        assert isinstance(toxic.attributes, PerRequest)
        if toxic not in self._exchanges:
            self._exchanges[toxic] = Exchange(toxic, toxic.attributes, toxic.dice, self._wake)
        return self._exchanges[toxic]

    def _wake(self) -> None:
        self._woken = True


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data cut at these places."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(places)]
