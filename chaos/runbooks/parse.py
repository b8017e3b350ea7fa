"""A runbook page as bytes with one marked block: the block is ours, every other byte belongs to people.

Nothing is decoded and encoded again, so line ends, a BOM, odd spaces and scripts of all kinds come through as they
were.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BEGIN = b"<!-- brownout:rehearsed:begin -->"
END = b"<!-- brownout:rehearsed:end -->"

SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "Rehearsed by")
"""What an on-call person looks for, in this order."""

_HEADING = re.compile(r"^##\s+(.+?)\s*#*\s*$", re.MULTILINE)
_TITLE = re.compile(r"^#\s+(.+?)\s*#*\s*$", re.MULTILINE)
_FRONT = re.compile(r"\A\ufeff?---\r?\n(.*?)^---\s*?$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1\s*?$", re.DOTALL | re.MULTILINE)
_CONFLICT = re.compile(rb"^(<{7} |={7}\r?$|>{7} )", re.MULTILINE)


class RunbookError(Exception):
    """The page cannot be refreshed as it stands; the message says what a person has to repair."""


class BrokenMarkers(RunbookError):
    """The markers of the block are missing, doubled, or in the wrong order."""


class MergeConflict(RunbookError):
    """The page holds the markers of an unresolved merge."""


@dataclass(frozen=True)
class Split:
    """A page cut at its markers: before + block + after is the page. Both markers belong to the outside."""

    before: bytes
    block: bytes
    after: bytes


@dataclass(frozen=True)
class Page:
    """What a page says, for checking: front matter keys, title, sections with their text."""

    front: dict[str, str]
    title: str | None
    sections: dict[str, str]


def split(text: bytes) -> Split:
    """Cut a page at its markers. Raises MergeConflict, BrokenMarkers."""
    if conflict := _CONFLICT.search(text):
        line = text.count(b"\n", 0, conflict.start()) + 1
        raise MergeConflict(f"line {line} holds a merge conflict marker; resolve the conflict first")
    counts = text.count(BEGIN), text.count(END)
    if counts != (1, 1):
        raise BrokenMarkers(
            f"found {counts[0]} begin and {counts[1]} end markers, expected one of each: "
            f"{BEGIN.decode()} and {END.decode()}"
        )
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if end < begin:
        raise BrokenMarkers("the end marker stands before the begin marker")
    return Split(text[:begin], text[begin:end], text[end:])


def parse(text: bytes) -> Page:
    """Read a page for checking. Raises RunbookError when it is not UTF-8."""
    try:
        page = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RunbookError(f"not UTF-8 at byte {error.start}") from error
    front = _FRONT.match(page)
    body = page[front.end() :] if front else page
    plain = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), body)
    heads = list(_HEADING.finditer(plain))
    ends = [head.start() for head in heads[1:]] + [len(plain)]
    title = _TITLE.search(plain)
    return Page(
        front=_front(front[1]) if front else {},
        title=title[1] if title else None,
        sections={head[1]: plain[head.end() : end].strip() for head, end in zip(heads, ends, strict=True)},
    )


def _front(text: str) -> dict[str, str]:
    """`key: value` lines; anything else is left to people."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith((" ", "#")))
    return {key.strip(): value.strip() for key, _, value in pairs}
