"""What every hop of one request carries: its trace, its deadline, its class, and the headers that pass them on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from target_stack.gateway.hops import Hop
from target_stack.gateway.policies.deadline import HEADER, Deadline
from target_stack.gateway.policies.queue import Priority
from target_stack.gateway.request_record import RequestRecord
from target_stack.gateway.trace import Trace


@dataclass(frozen=True)
class Call:
    """One request on its way. `arrived` is monotonic; a `resend` is the client's own retry, which earns no further
    ones; `record` is the account of the request that its hops add to; `hop` is the call to a dependency that this is
    part of.
    """

    trace: Trace
    arrived: float
    deadline: Deadline
    priority: Priority
    resend: bool = False
    record: RequestRecord = field(default_factory=RequestRecord)
    hop: Hop | None = None

    @property
    def trace_id(self) -> str:
        """32 hex digits."""
        return self.trace.trace_id

    def by(self, deadline: Deadline) -> Call:
        """The same call as a hop sees it that has less time."""
        return replace(self, deadline=deadline)

    def part_of(self, hop: Hop) -> Call:
        """The same call as the work of a hop sees it."""
        return replace(self, hop=hop)

    def headers(self, now: float) -> dict[str, str]:
        """Headers for the next hop."""
        return {HEADER: self.deadline.header(now), **self.place().headers(), "x-request-id": self.trace_id}

    def place(self) -> Trace:
        """Under what the next hop works."""
        return self.hop.trace if self.hop else self.trace
