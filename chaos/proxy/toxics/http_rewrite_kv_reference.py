"""`http_rewrite_kv_reference`: the `kv_transfer_params` in an answer name other KV blocks than those of its prompt.

A prefill engine answers with a reference, and whoever decodes believes it. This toxic makes the mistakes that routers
and engines make with references, on the wire, in answers whose body is JSON of known length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from chaos.proxy.toxics.per_request import Harm, PerRequest, Steps, is_end
from chaos.proxy.traffic.messages import Data, Framing, Head, Part
from chaos.settings import setting

KEY = "kv_transfer_params"
FAR_BLOCK = 1 << 30
_LENGTH = re.compile(rb"(\r\ncontent-length:[ \t]*)\d+", re.IGNORECASE)

Reference = Mapping[str, Any]


@dataclass
class Book:
    """References that have passed."""

    first: Reference | None = None
    last: Reference | None = None


def swapped(reference: Reference, book: Book) -> Reference:
    """The one that was made for the prompt before."""
    before, book.last = book.last, reference
    return before or reference


def expired(reference: Reference, book: Book) -> Reference:
    """The first one that passed: consumed long since, or out of its lease."""
    book.first = book.first or reference
    return book.first


def stale(reference: Reference, _book: Book, /) -> Reference:
    """One of an earlier life of the engine."""
    return {**reference, "remote_engine_id": "0" * len(str(reference.get("remote_engine_id")))}


def out_of_range(reference: Reference, _book: Book, /) -> Reference:
    """Blocks that no engine has."""
    return {**reference, "remote_block_ids": [[FAR_BLOCK]]}


DAMAGES = {"swapped": swapped, "expired": expired, "stale": stale, "out_of_range": out_of_range}


@dataclass
class HttpRewriteKvReference(PerRequest):
    """Answers without a reference pass as they are."""

    kind: ClassVar[str] = "http_rewrite_kv_reference"
    go_name: ClassVar[str] = "HttpRewriteKvReferenceToxic"
    damage: str = setting(
        "swapped: that of the prompt before; expired: the first that passed; stale: of an earlier life of the engine; "
        "out_of_range: blocks that do not exist",
        default="swapped",
    )

    def __post_init__(self) -> None:
        self._book = Book()

    def problem(self) -> str | None:
        return None if self.damage in DAMAGES else f"damage {self.damage!r} is none of {', '.join(DAMAGES)}"

    def harm(self) -> Harm:
        return _Rewrite(self.damage, self._book)


@dataclass
class _Answer:
    head: bytes
    body: bytearray = field(default_factory=bytearray)


class _Rewrite(Harm):
    """Holds an answer until it is whole; another reference may be longer."""

    def __init__(self, damage: str, book: Book) -> None:
        super().__init__()
        self._damage = damage
        self._book = book
        self._answer = _Answer(b"")
        self._retired = False

    @property
    def holds_framing(self) -> bool:
        return True

    def retire(self) -> None:
        self._retired = True

    def applies(self, answer: Head, /) -> bool:
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return is_json and answer.status == 200 and answer.framing() is Framing.LENGTH

    def part(self, part: Part, /) -> Steps:
        if isinstance(part, Head):
            self._answer.head = part.raw
        if isinstance(part, Data):
            self._answer.body += part.raw
        return ((0, self._whole()),) if is_end(part) else ()

    def _whole(self) -> bytes:
        head, body = self._answer.head, bytes(self._answer.body)
        changed = None if self._retired else self._rewritten(body)
        if changed is None:
            return head + body
        self.hit()
        return _LENGTH.sub(rb"\g<1>%d" % len(changed), head, count=1) + changed

    def _rewritten(self, body: bytes) -> bytes | None:
        """The body with another reference; None when there is nothing to change."""
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            return None
        reference = told.get(KEY) if isinstance(told, dict) else None
        if not isinstance(reference, dict):
            return None
        other = DAMAGES[self._damage](reference, self._book)
        if other == reference:
            return None
        return json.dumps({**told, KEY: other}, separators=(",", ":"), ensure_ascii=False).encode()
