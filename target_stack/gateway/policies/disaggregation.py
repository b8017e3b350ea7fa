"""Prefill and decode in engines of their own: how long each step may take, and whose reference goes with which prompt.

    prompt ──► prefill (prefill_s) ── reference ──► decode, which fetches the KV blocks (transfer_s to the first token)
       └────────── no prefill, or the blocks do not come ──────────► decode alone, which computes the prompt again

An engine that fetches waits without any limit, so the limit is here. Two settings are mistakes that routers make:
`without_prefill: fail` has no way around a prefill that is gone, and `references: by_beginning` takes a reference that
was made for a prompt with the same first words, although the rest of what lies there is another person's.
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
