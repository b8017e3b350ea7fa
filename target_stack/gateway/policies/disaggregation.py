"""Prefill and decode in engines of their own: how long each step may take, and whose reference goes with which prompt.

    prompt ──► prefill (prefill_s) ── reference ──► decode, which fetches the KV blocks (transfer_s to the first token)
       └────────── no prefill, or the blocks do not come ──────────► decode alone, which computes the prompt again

An engine that fetches waits without any limit, and believes any reference, so the limit and the doubt are here: vLLM
names the request in its reference, and one that names another request is not used. Three settings are mistakes that
routers make: `without_prefill: fail` has no way around a prefill that is gone, `references: by_beginning` takes one
that was made for a prompt with the same first words, and `check: none` takes whatever comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Reference = Mapping[str, Any]


@dataclass(frozen=True)
class DisaggregationSettings:
    """Times in seconds. `beginning_chars` are the first characters of a prompt that `by_beginning` looks at, and
    `reuse_s` is how long it believes a reference.
    """

    prefill_s: float = 1.0
    transfer_s: float = 1.0
    without_prefill: Literal["decode_alone", "fail"] = "decode_alone"
    references: Literal["per_request", "by_beginning"] = "per_request"
    beginning_chars: int = 8
    reuse_s: float = 20.0
    check: Literal["request_id", "none"] = "request_id"

    def believes(self, reference: Reference, request_id: str) -> bool:
        """Whether this reference is the one for the request of this id."""
        return self.check == "none" or request_id in str(reference.get("remote_request_id"))


class References:
    """The book of references. Kept per request, it has no page that two requests share."""

    def __init__(self, settings: DisaggregationSettings) -> None:
        self._settings = settings
        self._made: dict[str, tuple[float, Reference]] = {}

    def find(self, prompt: str, now: float) -> Reference | None:
        """One that was made before and will do."""
        if self._settings.references == "per_request":
            return None
        at, reference = self._made.get(self._key(prompt), (float("-inf"), None))
        return reference if now - at <= self._settings.reuse_s else None

    def made(self, prompt: str, reference: Reference, now: float) -> None:
        """A prefill engine has just computed this prompt."""
        if self._settings.references == "by_beginning":
            self._made[self._key(prompt)] = (now, reference)

    def _key(self, prompt: str) -> str:
        return prompt[: self._settings.beginning_chars]
