"""An OpenTelemetry collector: documents in, at most one sentence of trouble out. OTLP over HTTP in its JSON form.

Statuses that the protocol calls retryable are tried again, as late as the collector asks and never beyond the time that
the caller allows. A collector that took only a part says so in a reply of 200; that is trouble too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chaos.ports import Clock, Http, HttpReply

PATHS = {"resourceSpans": "/v1/traces", "resourceMetrics": "/v1/metrics"}
"""Signal of a document to where it goes below the endpoint."""

_RETRYABLE = frozenset({429, 502, 503, 504})
_PAUSE_S = 0.5
_CALL_S = 5.0


def endpoint_problem(endpoint: str) -> str | None:
    """Why this cannot be an endpoint; None when it can."""
    try:
        parts = urlsplit(endpoint)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        known = None
    return None if known else f"`{endpoint}` is not an endpoint; write http://HOST:4318 or https://HOST/PATH"


async def deliver(
    http: Http,
    clock: Clock,
    endpoint: str,
    document: Mapping[str, Any],
    *,
    within_s: float,
    token_file: str | None = None,
) -> str | None:
    """Hand over one document; None when the collector took all of it, else what it or the network said."""
    (signal,) = document
    url, give_up = endpoint.rstrip("/") + PATHS[signal], clock.now() + within_s
    while True:
        left_s = give_up - clock.now()
        reply = await http.call("POST", url, document, timeout_s=min(_CALL_S, left_s), token_file=token_file)
        pause_s = _pause_s(reply)
        if pause_s is None or clock.now() + pause_s >= give_up:
            return _trouble(url, reply)
        await clock.sleep_until(clock.now() + pause_s)


def _pause_s(reply: HttpReply) -> float | None:
    """How long to wait before trying again; None when that is no use."""
    if reply.status not in _RETRYABLE:
        return None
    asked = reply.headers.get("retry-after", "")
    return max(_PAUSE_S, float(asked)) if asked.isdecimal() else _PAUSE_S


def _trouble(url: str, reply: HttpReply) -> str | None:
    if reply.status == 0:
        return f"{url}: {reply.error}"
    if reply.status != 200:
        return f"{url} answered {reply.status}: {_said(reply.body)}".rstrip(": ")
    part = _fields(reply.body).get("partialSuccess") or {}
    rejected = sum(int(part.get(key, 0)) for key in ("rejectedSpans", "rejectedDataPoints"))
    return f"{url} rejected {rejected}: {part.get('errorMessage', '')}".rstrip(": ") if rejected else None


def _said(body: str) -> str:
    """The message of an error in the protocol's form, or the beginning of any other text."""
    return str(_fields(body).get("message") or " ".join(body.split())[:200])


def _fields(body: str) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
