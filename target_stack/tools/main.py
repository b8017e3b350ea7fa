"""The tools as a process: an MCP server (official SDK, streamable HTTP) over one SQLite file.

    {"listen": "127.0.0.1:9000", "data_dir": "...", "enforcement": "enforce", "audit": "in_transaction",
     "agents": {"support": {"token_sha256": "...", "tools": {"order_status": {}}}}}

Without `data_dir` all is kept in memory; without `agents` everybody is refused. The SDK and what it brings (pydantic,
starlette, uvicorn) cost a second of CPU, so the start of the stack does not wait for them: this process imports them
after its fork, and the nursery once the stack is ready (`serve.IMPORTED_LATE`), so that a restart is quick.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM. Raises ValueError or KeyError for a bad config, OSError for a taken port."""
    importlib.import_module("target_stack.tools.server").serve(config)
