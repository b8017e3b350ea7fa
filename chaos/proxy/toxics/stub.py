"""What a toxic is to one direction of one connection: a small state machine that says which bytes leave when.

A stub is told of every chunk and of the end of the stream and answers with a schedule: what to pass on, and at which
monotonic time. It owns no socket, no clock and no timer, so a test can run it through an hour in microseconds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from enum import Enum
from typing import Any, ClassVar, Protocol


class End(Enum):
    """How a stream ends. What travels through a link is bytes, and then one of these."""

    FIN = "the sender has no more to say"
    CLOSE = "the connection is over in both directions"
    RESET = "the connection is torn down with RST, if it was opened under a toxic that may do so"
    ABORT = "the connection is torn down with RST, whenever it was opened"


GRAIN = 32 * 1024
"""The most bytes that a toxic is shown at a time, as in Toxiproxy."""
COARSE = 120 * 1024
"""For kinds to which it makes no difference: costs a third, and is just below what malloc asks the kernel for."""
Item = bytes | End
Schedule = Iterable[tuple[float, Item]]
"""(due, item) in order of time. Empty bytes pass nothing on, they only keep the stub busy until then."""


class Stub:
    """Passes everything on at once; toxics override what they change.

    The next chunk is shown to a stub only when its schedule is empty, so time spent here presses back on the sender.
    """

    preempts: ClassVar[bool] = False  # a new chunk cancels what is scheduled
    binding: ClassVar[bool] = False  # what is scheduled happens, whatever becomes of the toxic
    per_request: ClassVar[bool] = False  # throws its dice for every request and counts its own hits

    def start(self, _now: float, /) -> Schedule:
        """The stub begins, or begins anew because its toxic or its neighbour was changed."""
        return ()

    def chunk(self, now: float, _stamp: float, data: bytes, /) -> Schedule:
        """`data` was received at `_stamp` and it is this stub's turn at `now`, which is never earlier."""
        return ((now, data),)

    def end(self, now: float, end: End, /) -> Schedule:
        """The sender is done."""
        return ((now, end),)

    def woken(self, _now: float, /) -> Schedule:
        """The other direction has news: what is to follow now."""
        return ()

    def leave(self) -> bytes | None:
        """The toxic was removed: what is half read. None: harmless from now on, it must stay with what it has begun."""
        return b""


class Attributes(Protocol):
    """The settings of one toxic: a mutable dataclass of integers, because an update reaches stubs that already run."""

    kind: ClassVar[str]  # the `type` in the API
    go_name: ClassVar[str]  # what Toxiproxy calls the struct; it shows in error texts
    go_int: ClassVar[str]  # its integer type there, likewise
    buffer: ClassVar[int]  # chunks that may wait in front of a stub, active or not
    grain: ClassVar[int]  # the most bytes of a chunk
    resets: ClassVar[bool]  # may end a connection with RST
    closes_when_removed: ClassVar[bool]  # the connections that it held cannot go on
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def problem(self) -> str | None:
        """Why these values cannot be used, if so."""
        ...

    def stub(self, dice: random.Random, /) -> Stub:
        """A fresh state machine that follows these settings live."""
        ...


class Plain:
    """Defaults of what most toxics have in common."""

    go_int: ClassVar[str] = "int64"
    buffer: ClassVar[int] = 1
    grain: ClassVar[int] = GRAIN
    resets: ClassVar[bool] = False
    closes_when_removed: ClassVar[bool] = False

    def problem(self) -> str | None:
        """Toxiproxy takes any number, and so do we: the kinds that are its own make sense of all."""
        return None
