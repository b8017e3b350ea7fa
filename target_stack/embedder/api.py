"""OpenAI's embeddings request and reply, as pure functions over JSON."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from target_stack.embedder.embedding import DIMENSIONS, Embedded

MOST_INPUTS = 256


class BadRequest(ValueError):
    """The request makes no sense; `param` names the field that is wrong."""

    def __init__(self, message: str, param: str | None = None) -> None:
        """Keep the field beside the sentence."""
        super().__init__(message)
        self.param = param

    def to_json(self) -> dict[str, Any]:
        """OpenAI's error shape."""
        error = {"message": str(self), "type": "invalid_request_error", "param": self.param, "code": None}
        return {"error": error}


@dataclass(frozen=True)
class EmbeddingRequest:
    """Texts to embed and how to write the vectors."""

    inputs: tuple[str, ...]
    encoding: Literal["float", "base64"]


def parse(body: Any) -> EmbeddingRequest:
    """Check a decoded body. Raises BadRequest."""
    if not isinstance(body, Mapping):
        raise BadRequest("the body must be a JSON object")
    given = body.get("input")
    inputs = [given] if isinstance(given, str) else given
    if not isinstance(inputs, list) or not inputs or not all(isinstance(text, str) and text for text in inputs):
        raise BadRequest("input must be a non-empty string or a list of them", "input")
    if len(inputs) > MOST_INPUTS:
        raise BadRequest(f"input holds {len(inputs)} texts; the most is {MOST_INPUTS}", "input")
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise BadRequest("encoding_format must be float or base64", "encoding_format")
    if body.get("dimensions", DIMENSIONS) != DIMENSIONS:
        raise BadRequest(f"dimensions must be {DIMENSIONS}", "dimensions")
    return EmbeddingRequest(tuple(inputs), encoding)


def _written(vector: tuple[float, ...], encoding: str) -> list[float] | str:
    if encoding == "float":
        return list(vector)
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def reply(request: EmbeddingRequest, results: Sequence[Embedded], model: str) -> dict[str, Any]:
    """The whole answer to a request, whose texts have these results."""
    data = [
        {"object": "embedding", "index": index, "embedding": _written(result.vector, request.encoding)}
        for index, result in enumerate(results)
    ]
    tokens = sum(result.tokens for result in results)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": model, "data": data, "usage": usage}
