"""One HTTP-aware toxic on one connection: it sees the requests pass on one link and harms their answers on the other.

    client ─► RequestStub ─► upstream        notes every request, throws its dice, may keep it
    client ◄─ AnswerStub  ◄─ upstream        harms the answers of the chosen ones, gives the kept ones ours

Requests are answered in order, so a queue joins the two. An answer without a question (the toxic came in the middle of
it) passes as it is, and so does everything that is not HTTP.

Where the body of a request decides, the dice wait for its end. A request passes on meanwhile, unless its answer may be
ours: then it is held, as what has been passed on cannot be taken back.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics.per_request import Harm, PerRequest, Reply, is_end, names_toxic
from chaos.proxy.toxics.stub import End, Item, Schedule, Stub
from chaos.proxy.traffic.messages import Alien, Data, Head, Part, Reader
from chaos.proxy.traffic.replies import rendered

_BODY_MOST = 1 << 20  # a longer one is not read for what it asks for


@dataclass(eq=False)
class Pending:
    """A request whose body is still to decide, or only to shape the harm where it is `certain`. `held` is what has come
    of it, where that must not pass on yet.
    """

    holds: bool
    certain: bool = False
    body: bytearray = field(default_factory=bytearray)
    held: bytearray = field(default_factory=bytearray)


@dataclass(eq=False)
class Ask:
    """A request on its way: the harm that its answer is chosen for, or the answer that we give ourselves."""

    head: Head
    harm: Harm | None
    reply: Reply | None = None
    ready: bool = False  # the whole request is here, so that it may be answered
    pending: Pending | None = None


class Exchange:
    """Both stubs and what they share. `wake` asks the owner to look at `AnswerStub.woken` soon."""

    def __init__(self, toxic: Toxic, attributes: PerRequest, dice: random.Random, wake: Callable[[], None]) -> None:
        self.toxic = toxic
        self.asks: deque[Ask] = deque()
        self.wake = wake
        self.up = RequestStub(self)
        self.down = AnswerStub(self)
        self._attributes = attributes
        self._dice = dice
        self._hit_before = False
        self.retired = False  # the toxic was removed

    def chosen(self, request: Head) -> Harm | None:
        """Throw the dice for a request that matches by its head. An observer of this toxic needs no dice."""
        if self.retired or self._needs_body(request):
            return None
        if self._names_us(request):
            return self._attributes.harm()
        return self._draw(b"") if self._attributes.matches(request) else None

    def pending(self, request: Head) -> Pending | None:
        """Whether the body of a request that was not chosen by its head is to decide.

        A client that waits for leave to send its body would wait in vain for us to let its head pass, so there nothing
        is held, and no answer is ours.
        """
        if self.retired or not self._needs_body(request):
            return None
        certain = self._names_us(request)
        if not certain and not self._attributes.matches(request):
            return None
        holds = self._attributes.harm().reply() is not None
        return None if holds and "expect" in request.headers else Pending(holds, certain)

    def chosen_by_body(self, pending: Pending) -> Harm | None:
        """Throw the dice for a request whose head matches, if its body does."""
        body = bytes(pending.body)
        if self.retired or len(body) > _BODY_MOST:
            return None
        if pending.certain:
            return self._attributes.harm_to(body)
        return self._draw(body) if self._attributes.matches_body(body) else None

    def _needs_body(self, request: Head) -> bool:
        kind = self._attributes
        return kind.answers_by_body or (kind.chooses_by_body and not self._names_us(request))

    def _names_us(self, request: Head) -> bool:
        return names_toxic(request, self.toxic.name)

    def _draw(self, body: bytes) -> Harm | None:
        self.toxic.hits.matched += 1
        return self._attributes.harm_to(body) if self._dice.random() < self.toxic.toxicity else None

    def count(self, before: tuple[int, int], harm: Harm) -> None:
        """Add to the toxic's hits what the harm has done since (requests, events) were `before`."""
        hits = self.toxic.hits
        hits.requests += harm.requests - before[0]
        hits.events += harm.events - before[1]
        if harm.requests and not self._hit_before:
            self._hit_before = True
            hits.connections += 1


class RequestStub(Stub):
    """Passes on what it reads, but for requests that get their answer from us."""

    per_request = True

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._reader = Reader(answers=False)
        self._current: Ask | None = None

    def chunk(self, now: float, _stamp: float, data: bytes, /) -> Schedule:
        return [(now, passed) for part in self._reader.feed(data) if (passed := self._pass(part))]

    def end(self, now: float, end: End, /) -> Schedule:
        kept = self._current is not None and self._current.reply is not None
        rest: list[tuple[float, Item]] = [(now, part.raw) for part in self._reader.finish() if not kept]
        return ((now, self._let_go()), *rest, (now, end))

    def leave(self) -> bytes | None:
        """See Stub. In a request that is kept it must stay: the rest of it is not for the upstream."""
        self._exchange.retired = True
        if self._current and self._current.reply:
            return None
        return self._let_go() + b"".join(part.raw for part in self._reader.finish())

    def _pass(self, part: Part) -> bytes:
        if isinstance(part, Head):
            self._current = self._asked(part)
        current = self._current
        if current is None or isinstance(part, Alien):
            return self._let_go() + part.raw
        if current.pending:
            return self._collect(current, current.pending, part)
        kept = current.reply is not None
        if is_end(part) or (kept and "expect" in current.head.headers):
            self._whole(current)
        return b"" if kept else part.raw

    def _asked(self, head: Head) -> Ask:
        harm = self._exchange.chosen(head)
        ask = Ask(head, None, pending=None if harm else self._exchange.pending(head))
        self._choose(ask, harm)
        self._exchange.asks.append(ask)
        return ask

    def _choose(self, ask: Ask, harm: Harm | None) -> None:
        ask.harm, ask.reply = harm, harm.reply() if harm else None
        if harm and ask.reply:
            harm.hit()
            self._exchange.count((0, 0), harm)

    def _collect(self, ask: Ask, pending: Pending, part: Part) -> bytes:
        """One more part of a request whose body decides, and the decision when it is whole, or too long to be read."""
        if isinstance(part, Data):
            pending.body += part.raw
        if pending.holds:
            pending.held += part.raw
        passing = b"" if pending.holds else part.raw
        if is_end(part) or len(pending.body) > _BODY_MOST:
            self._choose(ask, self._exchange.chosen_by_body(pending))
            passing = passing if ask.reply else passing + self._let_go()
            ask.pending = None
        if is_end(part):
            self._whole(ask)
        return passing

    def _let_go(self) -> bytes:
        """What is held of a request that is not ours to answer; its body decides nothing any more."""
        pending = self._current.pending if self._current else None
        if self._current is None or pending is None:
            return b""
        self._current.pending = None
        return bytes(pending.held)

    def _whole(self, ask: Ask) -> None:
        self._current = None
        if ask.reply and not ask.ready:
            ask.ready = True
            self._exchange.wake()


class AnswerStub(Stub):
    """Passes on what it reads, but for answers that are harmed."""

    per_request = True

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._reader = Reader(answers=True, asked_with=self._method)
        self._harm: Harm | None = None  # of the answer that is passing
        self._joined = False  # a question was seen, so a message begins where this one ended

    def chunk(self, now: float, _stamp: float, data: bytes, /) -> Schedule:
        if not self._joined and not self._exchange.asks:
            return ((now, data),)
        self._joined = True
        schedule: list[tuple[float, Item]] = []
        for part in self._reader.feed(data):
            for wait_s, item in self._steps(part):
                now += wait_s
                schedule.append((now, item))
        return schedule

    def woken(self, now: float, /) -> Schedule:
        return [(now, item) for item in self._own_answers()] if self._reader.between else ()

    def end(self, now: float, end: End, /) -> Schedule:
        rest = [(now, item) for part in self._reader.finish() for _, item in self._steps(part)]
        return (*rest, (now, end))

    def leave(self) -> bytes | None:
        """See Stub. A stream that was framed anew must be so to its end; a request that was kept needs its answer."""
        self._exchange.retired = True
        if self._harm:
            self._harm.retire()
        if (self._harm and self._harm.holds_framing) or any(ask.reply for ask in self._exchange.asks):
            return None
        return b"".join(part.raw for part in self._reader.finish())

    def _method(self) -> str:
        """Of the request whose answer comes next."""
        return self._exchange.asks[0].head.method if self._exchange.asks else ""

    def _steps(self, part: Part) -> list[tuple[float, Item]]:
        if isinstance(part, Head) and part.status >= 200:
            asks = self._exchange.asks
            harm = asks.popleft().harm if asks else None
            self._harm = harm if harm and not self._exchange.retired and harm.applies(part) else None
        steps: list[tuple[float, Item]]
        if self._harm:
            before = self._harm.requests, self._harm.events
            steps = list(self._harm.part(part))
            self._exchange.count(before, self._harm)
        else:
            steps = [(0, part.raw)]
        if is_end(part) and self._reader.between:
            self._harm = None
            steps += [(0, item) for item in self._own_answers()]
        return steps

    def _own_answers(self) -> list[Item]:
        """The answers that are ours to give now: those of kept requests at the front of the queue."""
        asks, items = self._exchange.asks, list[Item]()
        while asks and asks[0].reply and asks[0].ready:
            ask = asks.popleft()
            if ask.reply:
                items += rendered(ask.reply, ask.head)
        return items
