"""Under which idempotency key a call to a tool is made.

A lost reply says nothing about the side effect: it may have happened. Asking again is safe only under the key of the
first try, by which the tools know the call again. `per_try` is the mistake that many make: each try is a call of its
own, so a lost reply becomes a second refund.
"""

from __future__ import annotations

from typing import Literal

ToolKey = Literal["per_request", "per_try"]


def key_of(rule: ToolKey, request_key: str, attempt: int) -> str:
    """The key of a try, counted from 1."""
    return request_key if rule == "per_request" else f"{request_key}-try{attempt}"
