"""What a part writes down of each call that it gets or makes: one row in a ring, read by whoever asks.

    GET /debug/spans?after=N -> {"columns": [...], "spans": [[...], ...], "last": N}

A page holds the oldest rows after N, at most a few hundred, so that no reader holds up the loop; `last` is the number
of the newest row there is. Rows are numbered from 1 and the ring forgets the oldest: a reader sees what it missed.
Times are CLOCK_MONOTONIC in seconds. Nothing that anybody said is in a span.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

ROUTE = "/debug/spans"
COLUMNS = (
    *("seq", "trace_id", "span_id", "parent_id", "kind", "name", "peer", "start", "end", "outcome", "attempt"),
    *("prompt_tokens", "output_tokens"),
)
_KEPT = 16_384
_PAGE = 400
_MOST_ID = (1 << 64) - 1
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")

Clock = Callable[[], float]


def place_of(traceparent: str | None) -> tuple[str, str]:
    """Trace id and span id of the caller by a W3C `traceparent`; two empty texts without a valid one."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    return (found[1], found[2]) if found else ("", "")


class SpanRing:
    """The last calls of one part."""

    def __init__(self, clock: Clock, first_id: int, size: int = _KEPT) -> None:
        """Nothing yet. Ids count from `first_id`, which is drawn anew in each life of a process; of more than `size`
        spans the oldest are forgotten.
        """
        self.clock = clock
        self._rows: deque[tuple[Any, ...]] = deque(maxlen=size)
        self._last = 0
        self._next_id = first_id

    def new_id(self) -> str:
        """16 hexadecimal digits, never all zeros, that no other span of this ring has."""
        self._next_id = (self._next_id + 1) & _MOST_ID or 1
        return f"{self._next_id:016x}"

    def add(self, *row: Any) -> None:
        """One span: the values of all columns after `seq`."""
        self._last += 1
        self._rows.append((self._last, *row))

    def after(self, seq: int, most: int = _PAGE) -> dict[str, Any]:
        """The document for a reader who has seen everything up to `seq`."""
        new = max(0, min(self._last - seq, len(self._rows)))
        skipped = len(self._rows) - new
        return {"columns": COLUMNS, "spans": list(islice(self._rows, skipped, skipped + most)), "last": self._last}

    def page(self, after: str | None) -> tuple[int, str]:
        """Status and JSON of the answer to `?after=`."""
        if not (after or "0").isdecimal():
            return 400, json.dumps({"error": "after must be a sequence number"})
        return 200, json.dumps(self.after(int(after or 0)), separators=(",", ":"))


@dataclass(slots=True)
class Serving:
    """A call that is being served; whoever serves it fills in what it knows."""

    outcome: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None


@contextmanager
def serving(spans: SpanRing, headers: Mapping[str, str], name: str) -> Iterator[Serving]:
    """Write down a call that is served inside the block, whatever becomes of it."""
    call, start = Serving(), spans.clock()
    try:
        yield call
        call.outcome = call.outcome or "ok"
    except (asyncio.CancelledError, ConnectionError):
        call.outcome = call.outcome or "caller_gone"
        raise
    except BaseException:
        call.outcome = call.outcome or "error"
        raise
    finally:
        trace_id, parent_id = place_of(headers.get("traceparent"))
        row = (trace_id, spans.new_id(), parent_id, "callee", name, "", start, spans.clock(), call.outcome, 1)
        spans.add(*row, call.prompt_tokens, call.output_tokens)
