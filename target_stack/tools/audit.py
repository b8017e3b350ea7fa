"""The record of every call: who, what, with which arguments, what came of it. Append-only, each line bound to the last.

    hash(n) = sha256(hash(n-1) + canonical JSON of line n)

so that a line that was changed or taken out shows. When a line is written is a choice: `in_transaction` with the side
effect, so that neither is ever there without the other; or `deferred`, some time after the reply, which is quicker by a
write and loses the lines of a process that dies.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

AuditMode = Literal["in_transaction", "deferred"]
GENESIS = "0" * 64
MASK = "***"

_SECRET_NAME = re.compile(r"(?i)token|secret|password|passwd|authorization|api_?key|card|iban")
_SECRET_TEXT = re.compile(r"(?i)\b(bearer\s+)\S+|\b(sk-)[\w-]{8,}|\b(?:\d[ -]?){13,19}\b")
_LONGEST_TEXT = 500
_DEEPEST = 6


@dataclass(frozen=True)
class AuditLine:
    """One call. `wall` is Unix seconds, `mono` the machine's monotonic clock; `permitted` is what the rules said,
    `outcome` is `ok`, `replayed` or the code of the refusal.
    """

    wall: float
    mono: float
    agent: str
    tool: str
    arguments: Mapping[str, Any]
    key: str | None
    trace_id: str | None
    permitted: bool
    outcome: str
    result: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """With secrets masked and texts bounded."""
        return {**asdict(self), "arguments": masked(self.arguments), "result": masked(self.result)}


def masked(value: Any, depth: int = 0) -> Any:
    """The same value without secrets, in a size that a log can take."""
    if isinstance(value, str):
        return _SECRET_TEXT.sub(lambda found: f"{found[1] or found[2] or ''}{MASK}", value[:_LONGEST_TEXT])
    if isinstance(value, Mapping | list) and depth >= _DEEPEST:
        return MASK
    if isinstance(value, Mapping):
        return {
            str(name): MASK if _SECRET_NAME.search(str(name)) else masked(inner, depth + 1)
            for name, inner in value.items()
        }
    return [masked(inner, depth + 1) for inner in value] if isinstance(value, list) else value


def chained(previous: str, line: Mapping[str, Any]) -> str:
    """The hash of a line behind the hash of the one before it."""
    text = json.dumps(line, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(previous.encode() + text.encode()).hexdigest()


def broken_at(entries: Iterable[Mapping[str, Any]], previous: str = GENESIS) -> int | None:
    """Number (`seq`) of the first entry that does not follow from the one before it; None when all do."""
    for entry in entries:
        line = {name: value for name, value in entry.items() if name not in ("seq", "hash")}
        if chained(previous, line) != entry["hash"]:
            return int(entry["seq"])
        previous = entry["hash"]
    return None


class AuditBook(Protocol):
    """Where lines are kept: `append_audit` joins the transaction that is open, or is one of its own."""

    def append_audit(self, line: Mapping[str, Any]) -> None:
        """Write one line."""
        ...


class AuditLog(Protocol):
    """When lines are written."""

    def note(self, line: AuditLine) -> None:
        """Take a line; called inside the transaction of the call."""
        ...

    def flush(self) -> None:
        """Write what is not written yet; called now and then, and at the end."""
        ...


class InTransaction:
    """Writes at once, together with the side effect."""

    def __init__(self, book: AuditBook) -> None:
        self._book = book

    def note(self, line: AuditLine) -> None:
        """See AuditLog."""
        self._book.append_audit(line.to_json())

    def flush(self) -> None:
        """Nothing waits."""


class Deferred:
    """Keeps lines in memory until the next flush."""

    def __init__(self, book: AuditBook) -> None:
        self._book = book
        self._waiting: list[AuditLine] = []

    def note(self, line: AuditLine) -> None:
        """See AuditLog."""
        self._waiting.append(line)

    def flush(self) -> None:
        """See AuditLog."""
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self._book.append_audit(line.to_json())


def open_log(mode: AuditMode, book: AuditBook) -> AuditLog:
    """The log of this mode."""
    return InTransaction(book) if mode == "in_transaction" else Deferred(book)
