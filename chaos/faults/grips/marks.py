"""Names that a fault leaves on what it holds, so that its revert takes away its own hold and nobody else's."""

from __future__ import annotations

import uuid


def new_mark(kind: str) -> str:
    """A name no other fault has had. It decides nothing, so it needs no seed."""
    return f"brownout-{kind}-{uuid.uuid4().hex[:12]}"
