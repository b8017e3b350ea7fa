"""A retry budget in two currencies: first tries that succeed earn a fraction of a retry, a retry pays a whole one.

A retry is paid as a call and as tokens of work (its prompt and the most it may answer), and needs both: a few retries
of huge prompts can drown an engine as well as many small ones. Whoever makes the retry pays here, the gateway or a
client that sends again. Only success earns, so with a dependency fully down nothing more comes in:

    retries <= burst + ratio * successes            work of retries <= work_burst + ratio * work of successes

Backoff spreads retries in time; only a budget lowers their number (theory.md, section 2).
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
    """What callers need of a budget. Work is counted in tokens."""

    @property
    def calls(self) -> float:
        """Retries that could be taken now, were they free of work."""
        ...

    @property
    def work(self) -> float:
        """Tokens of work that retries may cost now."""
        ...

    def succeeded(self, work: int) -> None:
        """A first try was answered."""
        ...

    def take_retry(self, work: int) -> bool:
        """True when one retry of so much work may be made; it is then paid for."""
        ...


class TokenBucketBudget:
    """Two token buckets. They start full, so a fault right after start can still be retried."""

    def __init__(self, settings: RetryBudgetSettings) -> None:
        self._settings = settings
        self._calls = settings.burst
        self._work = settings.work_burst

    @property
    def calls(self) -> float:
        """See RetryBudgetPolicy."""
        return self._calls

    @property
    def work(self) -> float:
        """See RetryBudgetPolicy."""
        return self._work

    def succeeded(self, work: int) -> None:
        """Earn `ratio` of a call and of its work, each up to its burst."""
        rules = self._settings
        self._calls = min(rules.burst, self._calls + rules.ratio)
        self._work = min(rules.work_burst, self._work + rules.ratio * work)

    def take_retry(self, work: int) -> bool:
        """Pay a call and its work when both are there, else nothing."""
        if self._calls < 1 or self._work < work:
            return False
        self._calls -= 1
        self._work -= work
        return True


class UnlimitedBudget:
    """The missing budget: every retry is allowed."""

    calls = work = float("inf")

    def succeeded(self, work: int) -> None:
        """Nothing to earn."""

    def take_retry(self, work: int) -> bool:  # noqa: ARG002  # the protocol's parameter
        """Always."""
        return True


def make_retry_budget(settings: RetryBudgetSettings) -> RetryBudgetPolicy:
    """The budget that the settings name."""
    return UnlimitedBudget() if settings.kind == "unlimited" else TokenBucketBudget(settings)
