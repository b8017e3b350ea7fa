"""What every hop of one request carries: its trace, its deadline, its class, and the headers that pass them on."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from target_stack.gateway.policies.deadline import HEADER, Deadline
from target_stack.gateway.policies.queue import Priority

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


@dataclass(frozen=True)
class Call:
    """One request on its way. `arrived` is monotonic; `trace_id` is 32 hex digits (W3C trace context); a `resend` is
    the client's own retry, which earns no further ones.
    """

    trace_id: str
    arrived: float
    deadline: Deadline
    priority: Priority
    parent_id: str
    resend: bool = False

    def headers(self, now: float) -> dict[str, str]:
        """Headers for the next hop."""
        return {
            HEADER: self.deadline.header(now),
            "traceparent": f"00-{self.trace_id}-{self.parent_id}-01",
            "x-request-id": self.trace_id,
        }


def trace_id_of(traceparent: str | None, rng: random.Random) -> str:
    """The caller's trace id when it sent a valid `traceparent`, else a new one."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    if found and set(found[1]) != {"0"} and set(found[2]) != {"0"}:
        return found[1]
    return f"{rng.getrandbits(128) or 1:032x}"


def span_id(rng: random.Random) -> str:
    """A new span id, 16 hex digits."""
    return f"{rng.getrandbits(64) or 1:016x}"
