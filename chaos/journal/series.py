"""Names of series, in one canonical form: `name` or `name{a="x",b="y"}` with labels sorted by name.

Probes write them, evidence reads them back. Label values are escaped as in the Prometheus text format (backslash,
quote, newline).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|\})')
_ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unescape(value: str) -> str:
    return re.sub(r"\\.", lambda found: _ESCAPED.get(found[0], found[0]), value) if "\\" in value else value


def series_name(name: str, labels: Mapping[str, str] | None = None) -> str:
    """The canonical text of a series."""
    if not labels:
        return name
    inside = ",".join(f'{label}="{_escape(labels[label])}"' for label in sorted(labels))
    return f"{name}{{{inside}}}"


def scan_series(text: str) -> tuple[str, dict[str, str], str]:
    """Name, labels and the rest of a line that begins with a series. Raises ValueError when it does not."""
    head = _NAME.match(text)
    if not head:
        raise ValueError(f"not a series: {text[:80]!r}")
    at, labels = head.end(), dict[str, str]()
    if text[at : at + 1] != "{":
        return head[0], labels, text[at:]
    at += 1
    if empty := re.compile(r"\s*\}").match(text, at):
        return head[0], labels, text[empty.end() :]
    while True:
        pair = _LABEL.match(text, at)
        if not pair:
            raise ValueError(f"bad labels in series: {text[:80]!r}")
        labels[pair[1]] = _unescape(pair[2])
        at = pair.end()
        if pair[3] == "}":
            return head[0], labels, text[at:]
        if closing := re.compile(r"\s*\}").match(text, at):  # a trailing comma is allowed
            return head[0], labels, text[closing.end() :]


def parse_series(text: str) -> tuple[str, dict[str, str]]:
    """Name and labels of a whole series name. Raises ValueError."""
    name, labels, rest = scan_series(text)
    if rest.strip():
        raise ValueError(f"not a series: {text[:80]!r}")
    return name, labels
