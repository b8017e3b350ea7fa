"""How the people behind the requests behave: how long they wait, and whether they press the button again. Pure.

A persona is a set of defaults, and every key of `client` overrides one of them. `timeout_s` is for one attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaos.journal.record import Outcome
from chaos.spec.model import Client


@dataclass(frozen=True)
class ClientBehaviour:
    """`retries` counts resends of one request; `backoff_s` is the pause before each."""

    timeout_s: float
    retries: int
    backoff_s: float


PERSONAS: Mapping[str, ClientBehaviour] = {
    "patient": ClientBehaviour(timeout_s=30.0, retries=0, backoff_s=0.0),
    "impatient": ClientBehaviour(timeout_s=3.0, retries=0, backoff_s=0.0),
    "retry_happy": ClientBehaviour(timeout_s=2.0, retries=3, backoff_s=0.0),
}


def behaviour_of(client: Client) -> ClientBehaviour:
    """The persona with its overrides. Raises KeyError for an unknown persona."""
    base = PERSONAS[client.persona]
    return ClientBehaviour(
        timeout_s=base.timeout_s if client.timeout is None else float(client.timeout),
        retries=base.retries if client.retries is None else client.retries,
        backoff_s=base.backoff_s if client.backoff is None else float(client.backoff),
    )


@dataclass(frozen=True)
class Ending:
    """How one attempt ended, as far as the next move depends on it."""

    outcome: Outcome
    status: int
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Resend:
    """Send the same request again after a pause."""

    after_s: float


@dataclass(frozen=True)
class GiveUp:
    """The outcome of this attempt is the outcome of the request."""


def next_move(behaviour: ClientBehaviour, attempt: int, ending: Ending) -> Resend | GiveUp:
    """What this client does after attempt number `attempt` (from 1).

    A client with retries left resends after a 5xx, a 429, connection trouble, a broken stream and its own timeout;
    never after another 4xx and never after an answer. Only a client that pauses at all is polite enough to honour
    Retry-After.
    """
    if attempt > behaviour.retries or not _worth_resending(ending):
        return GiveUp()
    asked_s = ending.retry_after_s if behaviour.backoff_s > 0 else None
    return Resend(max(behaviour.backoff_s, asked_s or 0.0))


def _worth_resending(ending: Ending) -> bool:
    if ending.outcome == "failed":
        return not 400 <= ending.status < 500
    return ending.outcome in ("shed", "abandoned")
