"""What a saboteur leaves behind when it is killed, by program; the others leave nothing."""

from __future__ import annotations

from chaos.saboteurs import clock


def mend(program: str, mark: str) -> None:
    """Take it away. Raises HarmFailed or OSError."""
    if program == "clock":
        clock.mend(mark)
