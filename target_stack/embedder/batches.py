"""Who is embedded next: texts of all waiting requests in turn, as many at once as are quick together.

A request with hundreds of texts gives up its turn after each, so a single question never waits behind it for longer
than one batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

Request = TypeVar("Request")
MOST_TEXTS = 8  # the model's work per text hardly falls beyond
MOST_CHARACTERS = 1200  # about 40 ms on one core, a fifth of a question's time limit


class FairBatches(Generic[Request]):
    """The line. Requests are told apart by identity."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waiting: deque[tuple[Request, deque[tuple[int, str]]]] = deque()

    def add(self, request: Request, texts: Sequence[str]) -> None:
        """Join the line with at least one text."""
        self._waiting.append((request, deque(enumerate(texts))))

    def remove(self, request: Request) -> None:
        """Leave the line: whatever has not been taken is not done."""
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not request)

    def take(self) -> list[tuple[Request, int, str]]:
        """The next batch as (request, place in it, text); empty when nobody waits."""
        batch: list[tuple[Request, int, str]] = []
        characters = 0
        while self._waiting and len(batch) < MOST_TEXTS:
            request, texts = self._waiting[0]
            if batch and characters + len(texts[0][1]) > MOST_CHARACTERS:
                break
            self._waiting.popleft()
            place, text = texts.popleft()
            batch.append((request, place, text))
            characters += len(text)
            if texts:
                self._waiting.append((request, texts))
        return batch
