"""What a command gets besides its arguments: a way to speak, the environment, and where it was called.

Commands return an exit code and never print: `chaos.cli` gives them the two voices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Front:
    """`say` is for results (stdout), `warn` for trouble and progress (stderr); `terminal`: a person watches."""

    say: Callable[[str], None]
    warn: Callable[[str], None]
    environment: Mapping[str, str]
    here: Path
    terminal: bool

    def say_json(self, value: Any) -> None:
        """One JSON document."""
        self.say(json.dumps(value, indent=2, ensure_ascii=False))


class BadInput(Exception):
    """Something the caller gave cannot be used; the message is complete, with what to do. Exit code 64."""
