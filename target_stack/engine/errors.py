"""Every way in which vLLM says no, with its exact body: `{"error": {"message", "type", "param", "code"}}`.

Bodies and messages are pinned by the captures in fixtures/captures/vllm_0.32. There is no 429 and no Retry-After: vLLM
sends neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_REPORTED_PROBLEMS = 10


class ApiError(Exception):
    """A refusal with its HTTP status."""

    def __init__(self, code: int, kind: str, message: str, param: str | None = None) -> None:
        """`kind` is the `type` of the body; `param` names the offending field."""
        super().__init__(message)
        self.code = code
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def bad_request(message: str, param: str | None = None) -> ApiError:
    """400 for a request that is well formed but cannot be served."""
    return ApiError(400, "BadRequestError", message, param)


def invalid_body(problems: Iterable[Mapping[str, Any]]) -> ApiError:
    """400 for a body of the wrong shape; each problem has type, loc, msg, input and perhaps ctx."""
    listed = [dict(each) for each in problems]
    plural = "s" if len(listed) > 1 else ""
    lines = [f"{len(listed)} validation error{plural}:", *(f"  {each}" for each in listed[:_REPORTED_PROBLEMS])]
    return ApiError(400, "Bad Request", "\n".join(lines), listed[0]["loc"])


def wrong_content_type() -> ApiError:
    """400, not 415, for a body that is not declared as JSON."""
    message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
    return ApiError(400, "Bad Request", message)


def unknown_model(name: str, served: str) -> ApiError:
    """404 for a model that is not served here."""
    return ApiError(404, "NotFoundError", f"The model `{name}` does not exist. Valid aliases: {served}.", "model")


def output_too_long(param: str, asked: int, limit: int) -> ApiError:
    """400 when the answer alone would pass the context."""
    message = (
        f"{param}={asked} cannot be greater than max_model_len={limit}. Please request fewer output tokens. "
        f"(parameter={param}, value={asked})"
    )
    return bad_request(message, param)


def prompt_too_long(tokens: int, limit: int) -> ApiError:
    """400 when the prompt leaves no room for an answer."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your prompt contains {tokens} input tokens. "
        f"Please reduce the length of the input prompt. (parameter=input_tokens, value={tokens})"
    )
    return bad_request(message, "input_tokens")


def queue_full() -> ApiError:
    """503 of the admission limit."""
    advice = "Please try again later or on a different instance."
    message = f"The engine is currently busy and cannot accept new requests. {advice}"
    return ApiError(503, "Service Unavailable", message)


def too_many_queued_tokens() -> ApiError:
    """503 of the admission limit on prompt tokens still in prefill."""
    advice = "Please try again later or on a different instance."
    return ApiError(503, "Service Unavailable", f"The engine has reached its prefill token backlog limit. {advice}")


def out_of_range(message: str, param: str, value: Any) -> ApiError:
    """400 for a sampling parameter that makes no sense; vLLM repeats name and value behind its sentence."""
    return bad_request(f"{message} (parameter={param}, value={value})", param)


def failed_request() -> ApiError:
    """500 for one request that the engine could not serve while it serves others."""
    return ApiError(500, "InternalServerError", "Internal server error")


def too_many_logprobs(asked: int) -> ApiError:
    """400 of a server that was started with `--max-logprobs 0`: the simulation has no probabilities to tell."""
    return bad_request(f"Requested sample logprobs of {asked}, which is greater than max allowed: 0", "logprobs")


def engine_dead() -> ApiError:
    """500 once the core is gone, before the stream and in it."""
    message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    return ApiError(500, "InternalServerError", message)


def shutting_down() -> ApiError:
    """500 for a call that arrives while the server drains."""
    return ApiError(500, "InternalServerError", "cannot schedule new futures after shutdown")
