"""What a saboteur leaves behind when it is killed, by program; the others leave nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from chaos.saboteurs import clock

LEAVINGS: Mapping[str, Callable[[str], object]] = MappingProxyType({"clock": clock.mend})


def mend(program: str, mark: str) -> None:
    """Take it away. Raises HarmFailed or OSError."""
    if program in LEAVINGS:
        LEAVINGS[program](mark)
