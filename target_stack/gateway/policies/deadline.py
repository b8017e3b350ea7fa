"""One deadline per request; every smaller limit is cut from what is left of it.

    total  ≥  one try  ≥  first token  ≥  connect

A limit that outlives the one around it would never fire, so each is clipped to its parent. The rest of the total
travels to the next hop in the header `x-deadline-ms` (milliseconds left), never as a time of day.
"""

from __future__ import annotations

from dataclasses import dataclass

from target_stack.gateway.policies.settings import DeadlineSettings

HEADER = "x-deadline-ms"


@dataclass(frozen=True)
class TryBudget:
    """Limits of one try as monotonic times; `inter_token_s` is the longest silence between two tokens."""

    connect_at: float
    first_token_at: float
    end_at: float
    inter_token_s: float


@dataclass(frozen=True)
class Deadline:
    """The moment after which nobody waits for the answer (monotonic seconds)."""

    at: float

    @classmethod
    def of(cls, now: float, limit_s: float, asked_ms: float | None = None) -> Deadline:
        """`limit_s` from now, or sooner when the caller asked for it; a caller can never get more."""
        asked_s = limit_s if asked_ms is None else max(0.0, asked_ms / 1000)
        return cls(now + min(limit_s, asked_s))

    def remaining(self, now: float) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - now)

    def within(self, now: float, limit_s: float) -> Deadline:
        """The deadline of a part: `limit_s` from now, but not past this one."""
        return Deadline(min(self.at, now + limit_s))

    def header(self, now: float) -> str:
        """Value of `x-deadline-ms` for the next hop; at least 1, because 0 would read as `already over`."""
        return str(max(1, int(self.remaining(now) * 1000)))

    def budget(self, now: float, settings: DeadlineSettings) -> TryBudget:
        """Limits of a try that starts now."""
        end_at = min(self.at, now + settings.per_try_s)
        first_token_at = min(end_at, now + settings.first_token_s)
        return TryBudget(
            connect_at=min(first_token_at, now + settings.connect_s),
            first_token_at=first_token_at,
            end_at=end_at,
            inter_token_s=settings.inter_token_s,
        )


def asked_ms(value: str | None) -> float | None:
    """Read the header. Raises ValueError when it is not a positive finite number."""
    if value is None:
        return None
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"{HEADER} must be a positive number of milliseconds")
    return number
