"""A simulated vLLM: everything a client, a dashboard or a fault can observe, with a clock in place of a GPU."""

from __future__ import annotations

from target_stack.engine.main import main

__all__ = ["main"]
