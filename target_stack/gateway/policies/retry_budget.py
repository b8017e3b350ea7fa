"""A retry budget: first tries earn a fraction of a retry each, a retry costs a whole one, whoever makes it.

Over any run, retries <= burst + ratio * first tries, however many calls fail. Backoff spreads retries in time; only a
budget lowers their number (theory.md, section 2).
"""

from __future__ import annotations

from typing import Protocol

from target_stack.gateway.policies.settings import RetryBudgetSettings

RESEND_HEADER = "x-stainless-retry-count"
"""How OpenAI's SDKs number their attempts: 0 for the first, 1 for the first resend."""


def is_resend(header: str | None) -> bool:
    """Whether a client says that it has sent this request before; nonsense is taken for a first try."""
    return header is not None and header.isascii() and header.isdigit() and header.strip("0") != ""


class RetryBudgetPolicy(Protocol):
    """What callers need of a budget."""

    @property
    def tokens(self) -> float:
        """Retries that could be taken now."""
        ...

    def first_try(self) -> None:
        """A request makes its first try."""
        ...

    def take_retry(self) -> bool:
        """True when one retry may be made; it is then paid for."""
        ...


class TokenBucketBudget:
    """The token bucket. It starts full, so a fault right after start can still be retried."""

    def __init__(self, settings: RetryBudgetSettings) -> None:
        self._ratio = settings.ratio
        self._burst = settings.burst
        self._tokens = settings.burst

    @property
    def tokens(self) -> float:
        """Retries that could be taken now."""
        return self._tokens

    def first_try(self) -> None:
        """Earn `ratio` of a retry, up to the burst."""
        self._tokens = min(self._burst, self._tokens + self._ratio)

    def take_retry(self) -> bool:
        """Pay one token when there is one."""
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class UnlimitedBudget:
    """The missing budget: every retry is allowed."""

    tokens = float("inf")

    def first_try(self) -> None:
        """Nothing to earn."""

    def take_retry(self) -> bool:
        """Always."""
        return True


def make_retry_budget(settings: RetryBudgetSettings) -> RetryBudgetPolicy:
    """The budget that the settings name."""
    return UnlimitedBudget() if settings.kind == "unlimited" else TokenBucketBudget(settings)
