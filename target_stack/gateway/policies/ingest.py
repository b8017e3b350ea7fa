"""When a document that a user adds counts as added: once the store has it for good, or once we have it in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Acknowledge = Literal["committed", "accepted"]


@dataclass(frozen=True)
class IngestSettings:
    """`limit_s` is for a whole request, `write_s` for one write. `acknowledge: accepted` answers before the write is
    made: quicker, and whoever believes the answer loses what a store that is away does not take.
    """

    acknowledge: Acknowledge = "committed"
    limit_s: float = 3.0
    write_s: float = 1.0
    text_most: int = 8000

    def __post_init__(self) -> None:
        """Raises ValueError for a write that may take longer than the request that waits for it."""
        if self.write_s > self.limit_s:
            raise ValueError("policies.ingest: write_s is longer than limit_s, which would always fire first")
