"""What may be tried again: by kind of failure, and only while nobody has seen a part of the answer.

    elsewhere   this replica failed; another one may not               tried again
    once        the same everywhere (4xx), or nobody waits any more    never

After the first token a second answer would be glued to half of the first, so nothing is tried again then. A call to a
tool may have had its effect although its reply was lost, so it is tried again only with an idempotency key; what only
reads is its own key.

Two settings are mistakes that stacks make: `classes: any` tries whatever failed once more, and `hop_resends` lets the
client library of each hop try again below this policy, where no budget sees it (clients times gateway times library).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "unreachable",  # refused, or the connection went away before any answer
    "busy",  # 503, 429: alive, wants no more
    "bad_gateway",  # 502, 504
    "error",  # another 5xx
    "error_frame",  # an error inside the stream
    "aborted",  # finish_reason abort: the engine gave the request up
    "truncated",  # the stream ended without a finish_reason, [DONE] or not
    "malformed",  # not SSE, not JSON, not the shape of a chunk
    "no_first_token",  # silence before the first token
    "no_transfer",  # the KV blocks of a prompt did not come from the engine that computed it
    "stalled",  # silence between tokens
    "too_slow",  # the deadline came first; the replica may be fine
    "rejected",  # 4xx: the request is at fault
]
RetryClass = Literal["elsewhere", "once"]
CLASSES: Mapping[Kind, RetryClass] = {
    "unreachable": "elsewhere",
    "busy": "elsewhere",
    "bad_gateway": "elsewhere",
    "error": "elsewhere",
    "error_frame": "elsewhere",
    "aborted": "elsewhere",
    "truncated": "elsewhere",
    "malformed": "elsewhere",
    "no_first_token": "elsewhere",
    "no_transfer": "elsewhere",
    "stalled": "elsewhere",
    "too_slow": "once",
    "rejected": "once",
}
_NOT_CALLED = frozenset({"breaker_open", "too_many_calls", "not_configured"})


@dataclass(frozen=True)
class RetrySettings:
    """Which failures are tried again, and how often a hop's own client library does so without asking."""

    classes: Literal["safe", "any"] = "safe"
    hop_resends: int = 0


@dataclass(frozen=True)
class TriesSoFar:
    """Where a request stands. `remaining_s` is what its deadline leaves; `seen` is that the client has a part of it."""

    made: int
    seen: bool
    remaining_s: float


def may_retry(settings: RetrySettings, kind: Kind, so_far: TriesSoFar, attempts: int) -> bool:
    """Whether another try at a model makes sense; the budget is asked after this."""
    if not _room(so_far, attempts):
        return False
    return settings.classes == "any" or CLASSES[kind] == "elsewhere"


def may_repeat(settings: RetrySettings, reason: str, so_far: TriesSoFar, attempts: int, *, idempotent: bool) -> bool:
    """Whether a call to a tool or another service may be made again, given the word of its failure.

    `idempotent`: it only reads, or it carries a key by which the service knows it again. A call that our own side
    refused to make (an open breaker) is not made a moment later either.
    """
    if not _room(so_far, attempts) or reason in _NOT_CALLED:
        return False
    return settings.classes == "any" or idempotent


def _room(so_far: TriesSoFar, attempts: int) -> bool:
    return not so_far.seen and so_far.remaining_s > 0 and so_far.made < attempts
