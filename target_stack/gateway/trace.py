"""W3C trace context: which trace a request belongs to, taken from its headers and passed on by every hop.

Trace Context, level 1: `traceparent` is `00-<trace id>-<span id>-<flags>`; `tracestate` belongs to the vendors before
us and goes on as it came. A header that does not parse starts a new trace, as the standard says.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_STATE_MOST = 512
_PRINTABLE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True)
class Trace:
    """A place in a trace. `parent_id` is our own span, the parent of what we call; `caller_id` the span of who called
    us, empty when nobody told.
    """

    trace_id: str
    parent_id: str
    flags: str = "01"
    state: str = ""
    caller_id: str = ""

    def under(self, span_id: str) -> Trace:
        """The place of a span of its own below this one."""
        return Trace(self.trace_id, span_id, self.flags, self.state, self.parent_id)

    @property
    def parent(self) -> str:
        """Value of `traceparent` for the next hop."""
        return f"00-{self.trace_id}-{self.parent_id}-{self.flags}"

    def headers(self) -> dict[str, str]:
        """Headers for the next hop."""
        return {"traceparent": self.parent, **({"tracestate": self.state} if self.state else {})}

    def comment(self) -> str:
        """The same for a SQL statement, in sqlcommenter's form; its parts are hexadecimal, so it cannot end early."""
        return f"/*traceparent='{self.parent}'*/"


def trace_of(headers: Mapping[str, str], rng: random.Random) -> Trace:
    """The caller's trace with a span of ours in it, or a new trace."""
    parent_id = f"{rng.getrandbits(64) or 1:016x}"
    found = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    if found is None or set(found[1]) == {"0"} or set(found[2]) == {"0"}:
        return Trace(f"{rng.getrandbits(128) or 1:032x}", parent_id)
    return Trace(found[1], parent_id, found[3], _state(headers.get("tracestate", "")), found[2])


def _state(text: str) -> str:
    return text if len(text) <= _STATE_MOST and _PRINTABLE.fullmatch(text) else ""
