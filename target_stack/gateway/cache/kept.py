"""A kept answer: its record in the cache, and its second life as a stream."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from target_stack.gateway.cache.index import Entry
from target_stack.gateway.sse import Frame

_VERSION = 1


@dataclass(frozen=True)
class Record:
    """What is kept under a key: the whole reply, the documents that it rests on, how long it was meant to live, and its
    question's place in the index (None where the question could not be embedded).
    """

    reply: Mapping[str, Any]
    documents: str | None
    lifetime_s: float
    entry: Entry | None

    def to_bytes(self) -> bytes:
        """JSON; the vector as little-endian float32 in base64."""
        entry = self.entry
        index = entry and {
            "scope": entry.scope,
            "embedder": entry.embedder,
            "vector": base64.b64encode(struct.pack(f"<{len(entry.vector)}f", *entry.vector)).decode(),
            "telling": list(entry.telling),
        }
        record: dict[str, Any] = {"version": _VERSION, "lifetime_s": self.lifetime_s, "index": index}
        record |= {"reply": self.reply, "documents": self.documents}
        return json.dumps(record, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Record | None:
        """Read a record; None for what is not ours or of another version."""
        try:
            record = json.loads(data)
            if record["version"] != _VERSION:
                return None
            return cls(dict(record["reply"]), record["documents"], float(record["lifetime_s"]), _entry(record["index"]))
        except (ValueError, KeyError, TypeError, struct.error):
            return None


def _entry(index: Mapping[str, Any] | None) -> Entry | None:
    if index is None:
        return None
    vector = tuple(number for (number,) in struct.iter_unpack("<f", base64.b64decode(index["vector"])))
    return Entry(index["scope"], index["embedder"], vector, tuple(index["telling"]))


class KeptAnswer:
    """The reply again, in the shape of a stream: its text in one piece, then its end. `age_s` is how old it is."""

    served_by = "cache"

    def __init__(self, record: Record, age_s: float) -> None:
        self._reply = record.reply
        self.documents = record.documents
        self.age_s = age_s

    async def frames(self) -> AsyncIterator[list[Frame]]:
        """See Answer."""
        choices: list[dict[str, Any]] = self._reply["choices"]
        texts = [_choice(choice, choice["message"], None) for choice in choices]
        ends = [_choice(choice, {}, choice["finish_reason"]) for choice in choices]
        yield [self._frame(texts), self._frame(ends), self._frame([], usage=self._reply.get("usage"))]

    async def close(self) -> None:
        """Holds nothing."""

    def _frame(self, choices: list[dict[str, Any]], **more: Any) -> Frame:
        head = {key: self._reply.get(key) for key in ("id", "created", "model")}
        data = {**head, "object": "chat.completion.chunk", "choices": choices, **more}
        return Frame(b"data: " + json.dumps(data).encode() + b"\n\n", data)


def _choice(choice: Mapping[str, Any], delta: Mapping[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": choice["index"], "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}
