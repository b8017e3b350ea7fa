"""Which replicas are in rotation, judged by what they did and never by what their /health says.

A frozen engine answers /health with 200, so only progress counts: a token that came, or a token that did not come in
time.

* unreachable (refused, reset before an answer): out at once.
* stalled (no token in time): out at once when the replica made no progress for anyone since the silent request began;
  otherwise it is merely slow for one request, and only several stalls in a row take it out.
* errors (500, error frame, stream cut): out after several in a row.

Any token resets the counts. The last replica is never taken out: its breaker decides whether it is called. A replica
comes back when a real one-token probe succeeds, with fresh counts, so the second ejection needs exactly as much as
the first.

Both rules can be set wrong: `evidence: status` passes over stalls and errors, `evidence: running` believes a stall only
when the engine's own gauges admit it (requests wait and none runs; a frozen engine repeats its last gauges for ever),
`routing: everyone` ejects in name only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from target_stack.gateway.policies.settings import OutlierSettings

Trouble = Literal["unreachable", "stalled", "error"]


@dataclass(frozen=True)
class EngineLoad:
    """What an engine says of itself."""

    running: float
    waiting: float

    def stuck(self) -> bool:
        """Whether it says that it does nothing although there is something to do."""
        return self.running == 0 < self.waiting


_IDLE = EngineLoad(0.0, 0.0)


@dataclass
class _Record:
    admitted: bool = True
    load: EngineLoad = _IDLE
    last_progress: float = float("-inf")
    errors: int = 0
    stalls: int = 0


class OutlierDetector:
    """Feed it what happened; ask it who is admitted."""

    def __init__(self, settings: OutlierSettings, replicas: Sequence[str]) -> None:
        self._settings = settings
        self._records = {name: _Record() for name in replicas}

    def admitted(self) -> list[str]:
        """Replicas in rotation, in the order of the configuration."""
        return [name for name, record in self._records.items() if record.admitted]

    def routable(self) -> list[str]:
        """Replicas that may get requests, in the order of the configuration."""
        return list(self._records) if self._settings.routing == "everyone" else self.admitted()

    def ejected(self) -> list[str]:
        """Replicas out of rotation."""
        return [name for name, record in self._records.items() if not record.admitted]

    def progress(self, now: float, replica: str) -> None:
        """A token came."""
        record = self._records[replica]
        record.last_progress = now
        record.errors = record.stalls = 0

    def reported(self, replica: str, load: EngineLoad) -> None:
        """The engine's own gauges were read."""
        self._records[replica].load = load

    def trouble(self, replica: str, trouble: Trouble, *, silent_since: float = float("inf")) -> bool:
        """Something went wrong; True when this takes the replica out. `silent_since`: when a stall's silence began."""
        record = self._records[replica]
        if not record.admitted or not self._deserves(record, trouble, silent_since):
            return False
        if len(self.admitted()) == 1:
            return False
        record.admitted = False
        return True

    def restored(self, replica: str) -> bool:
        """A probe got a token; True when this brings the replica back."""
        record = self._records[replica]
        if record.admitted:
            return False
        self._records[replica] = _Record()
        return True

    def _deserves(self, record: _Record, trouble: Trouble, silent_since: float) -> bool:
        if trouble == "unreachable":
            return True
        if self._settings.evidence == "status":
            return False
        if self._settings.evidence == "running" and trouble == "stalled":
            return record.load.stuck()
        if trouble == "stalled":
            record.stalls += 1
            return record.last_progress <= silent_since or record.stalls >= self._settings.consecutive_stalls
        record.errors += 1
        return record.errors >= self._settings.consecutive_errors
