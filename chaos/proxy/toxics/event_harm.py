"""Harm to a token stream: the body is cut into events, each may be changed, and after each something may happen.

The changed stream is framed anew, one chunk an event, so that the HTTP around it stays valid whatever was done inside.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.proxy.toxics.per_request import Harm, Steps
from chaos.proxy.toxics.stub import End
from chaos.proxy.traffic.events import Splitter, data_of, framed, is_stream, with_chunks
from chaos.proxy.traffic.messages import Alien, Data, Framing, Head, Part
from chaos.proxy.traffic.messages import End as MessageEnd


class EventHarm(Harm):
    """Subclasses say what an event becomes (`edit`) and what follows once so many have passed (`passed`)."""

    def __init__(self) -> None:
        super().__init__()
        self._splitter = Splitter()
        self._framing = Framing.NONE
        self._count = 0
        self._retired = False
        self._over = False  # we have ended the body; what still comes of it is dropped

    def edit(self, _number: int, event: bytes, /) -> bytes:
        """What event number 1, 2, ... becomes on its way."""
        return event

    def passed(self, _count: int, /) -> Steps:
        """What follows when so many events have passed; 0 is right behind the head."""
        return ()

    def applies(self, answer: Head, /) -> bool:
        self._framing = answer.framing()
        if self._framing is Framing.LENGTH:
            # A client of HTTP/1.0 knows no chunks; its stream has another length only if it ends with the connection.
            return is_stream(answer) and answer.minor == 1
        return is_stream(answer)

    @property
    def holds_framing(self) -> bool:
        return True

    def retire(self) -> None:
        self._retired = True

    def part(self, part: Part, /) -> Iterator[tuple[float, bytes | End]]:
        if isinstance(part, Head):
            yield from self._begin(part)
        elif isinstance(part, Data) and not self._over:
            for block in self._splitter.feed(part.raw):
                yield from self._block(block)
        elif isinstance(part, MessageEnd) and not self._over:
            yield 0, framed(self._splitter.rest(), self._framing) + self._terminator(part.raw)
        elif isinstance(part, Alien):
            yield 0, part.raw

    def finish(self, last: bytes = b"") -> Iterator[tuple[float, bytes | End]]:
        """End the body here, properly, behind these bytes. The rest of what the upstream says is dropped."""
        self._over = True
        yield 0, framed(last, self._framing) + self._terminator()
        if self._framing is Framing.CLOSE:
            yield 0, End.CLOSE

    def _begin(self, head: Head) -> Iterator[tuple[float, bytes | End]]:
        if self._framing is Framing.LENGTH:
            self._framing = Framing.CHUNKED
            yield 0, with_chunks(head)
        else:
            yield 0, head.raw
        yield from self.passed(0)

    def _block(self, block: bytes) -> Iterator[tuple[float, bytes | End]]:
        if self._over:
            return
        if self._retired or data_of(block) is None:
            yield 0, framed(block, self._framing)
            return
        self._count += 1
        yield 0, framed(self.edit(self._count, block), self._framing)
        yield from self.passed(self._count)

    def _terminator(self, original: bytes = b"") -> bytes:
        """What ends a body: the upstream's own, with its trailer, if it had one."""
        if self._framing is not Framing.CHUNKED:
            return b""
        return original or b"0\r\n\r\n"
