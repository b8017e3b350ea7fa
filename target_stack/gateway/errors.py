"""Errors as OpenAI's clients know them: `{"error": {"message", "type", "param", "code"}}`, as a reply or as the last
frame of a stream.
"""

from __future__ import annotations

import json
import math
from typing import Any

from aiohttp import web


class GatewayError(Exception):
    """An answer that is not a success. `headers` go out with it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str,
        param: str | None = None,
        code: str | int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Keep what the client will be told; `code` is the status unless a word says it better."""
        super().__init__(message)
        self.status = status
        self.body = error_body(message, kind, param, status if code is None else code)
        self.headers = headers or {}

    @classmethod
    def passed_on(cls, status: int, body: dict[str, Any]) -> GatewayError:
        """An engine's own refusal, word for word."""
        error = cls(status, "refused by the engine", kind="BadRequestError")
        error.body = body
        return error

    def again(self) -> GatewayError:
        """The same answer for another request, with headers of its own."""
        twin = GatewayError.passed_on(self.status, self.body)
        twin.headers = dict(self.headers)
        return twin


def error_body(message: str, kind: str, param: str | None, code: str | int) -> dict[str, Any]:
    """The error object."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def bad_request(message: str, param: str | None = None, status: int = 400) -> GatewayError:
    """The request is at fault; `param` names the offending parameter."""
    kind = "NotFoundError" if status == 404 else "BadRequestError"
    return GatewayError(status, message, kind=kind, param=param)


def shed(reason: str, retry_after_s: float) -> GatewayError:
    """Refused before any work was done; come again later."""
    headers = {"Retry-After": str(math.ceil(retry_after_s)), "x-shed-reason": reason}
    message = "The service is at its limit and did not start on this request. Please retry later."
    return GatewayError(503, message, kind="ServiceUnavailableError", code=reason, headers=headers)


def unavailable(dependency: str, why: str, status: int = 503) -> GatewayError:
    """A dependency that this route cannot do without did not answer."""
    headers = {"Retry-After": "1"} if status == 503 else {}
    return GatewayError(
        status, f"{dependency} is not available: {why}", kind="ServiceUnavailableError", code=why, headers=headers
    )


def error_reply(error: GatewayError) -> web.Response:
    """The error as an HTTP reply."""
    return web.json_response(error.body, status=error.status, headers=error.headers)


def error_frame(message: str, kind: str) -> bytes:
    """The last frame of a stream that broke. No [DONE] follows, so that nobody can take it for a whole answer."""
    body = error_body(message, "InternalServerError", None, kind)
    return b"data: " + json.dumps(body).encode() + b"\n\n"
