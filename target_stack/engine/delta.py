"""One token on its way from the core to a client."""

from __future__ import annotations

from typing import NamedTuple


class Delta(NamedTuple):
    """One token of one choice; `finish` is set on its last."""

    choice: int
    piece: str
    finish: str | None
    stop_reason: str | None
