"""An adaptive limit on requests in flight: additive increase, multiplicative decrease on the time to first token.

The limit grows by one per limit's worth of good answers, and only while it is being used; it shrinks by a factor when
an answer was slow or refused as busy, at most once per cool-down, because one congestion gives many slow answers at
once.
"""

from __future__ import annotations

from target_stack.gateway.policies.settings import LimiterSettings


class AimdLimiter:
    """`limit` is how many requests may be in flight now."""

    def __init__(self, settings: LimiterSettings) -> None:
        self._settings = settings
        self._limit = float(settings.initial)
        self._quiet_until = float("-inf")

    @property
    def limit(self) -> int:
        """Requests that may be in flight at once."""
        return int(self._limit)

    def answered(self, now: float, first_token_s: float, in_flight: int) -> None:
        """A request got its first token after so long, with so many in flight."""
        if first_token_s > self._settings.target_s:
            self.refused(now)
        elif in_flight * 2 >= self.limit:
            self._limit = min(float(self._settings.maximum), self._limit + 1.0 / self._limit)

    def refused(self, now: float) -> None:
        """An engine said that it is too busy."""
        if now < self._quiet_until:
            return
        self._quiet_until = now + self._settings.cooldown_s
        self._limit = max(float(self._settings.minimum), self._limit * self._settings.decrease)
