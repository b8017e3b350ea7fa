"""The front door: OpenAI-compatible, and the reference for how one stands up to failures.

`policies/` decides without any effect, `(now, event) -> decision`; the modules beside it are thin shells around
sockets. `serving` joins them for one request; `cache/` is what it may share with others.

    app ─► admission ─► retrieval ─► fallback ─► dispatch ─► replicas ─► engine_client ─► an engine
    routes  queue+limit  embedder+store  chain     tries      who may     one try
"""

from target_stack.gateway.main import main

__all__ = ["main"]
