"""What a client of tools does where MCP leaves it the choice.

The stateless revision of the protocol has no session that a server could lose. Older ones have: whoever speaks them
must open a new session when the server says 404 (MCP 2025-11-25, transports, session management), and `kept` is the
client that does not. A result that breaks the tool's own output schema is looked for, or `trusted` like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ToolRules:
    """Both choices."""

    session: Literal["none", "renewed", "kept"] = "none"
    results: Literal["checked", "trusted"] = "checked"
