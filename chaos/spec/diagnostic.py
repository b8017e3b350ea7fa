"""A problem in a file as data: what is wrong, exactly where, and at most one way out.

Nothing here knows about colours or terminals: `chaos.spec.render` turns the same value into a page for people, a line
for an editor, JSON or a CI annotation. A span carries its source, so a diagnostic can be shown without anything beside
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True)
class Source:
    """A text with the name it is shown under. `rank` orders the problems of several sources (the file is 0, options
    follow).
    """

    label: str
    text: str
    rank: int = 0

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines as YAML counts them, without their ends."""
        return tuple(_LINE_BREAK.split(self.text))

    def point(self, index: int) -> Span:
        """The one character at `index`."""
        before = _LINE_BREAK.split(self.text[:index])
        line, column = len(before), len(before[-1]) + 1
        return Span(self, line, column, line, column + 1)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source. Lines and columns count characters from 1; the end is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def empty(self) -> bool:
        """Whether nothing is written there (the value of `key:`)."""
        return (self.line, self.column) == (self.end_line, self.end_column)

    def start(self) -> Span:
        """Its first character alone."""
        return Span(self.source, self.line, self.column, self.line, self.column + 1)

    def until(self, other: Span) -> Span:
        """From the start of this one to the end of a later one."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)


def within(span: Span, text: str, at: int, length: int) -> Span:
    """The stretch of a value's text inside the span of the value: plain, quoted, or in a block whose lines follow the
    key that the span is of. The whole span where the text was written in another way (escapes, comments).
    """
    lines = span.source.lines
    line, begin = span.line, span.column + lines[span.line - 1].startswith(("'", '"'), span.column - 1)
    first_line, words = text.partition("\n")[0], text[at : at + length].partition("\n")[0]
    if not lines[line - 1].startswith(first_line, begin - 1):
        line, begin = line + 1, 0
    while line <= len(lines):
        begin = begin or len(lines[line - 1]) - len(lines[line - 1].lstrip()) + 1
        room = len(lines[line - 1]) + 1 - begin
        if at <= room:
            return _if_it_says(words, line, begin + at, span)
        at, line, begin = at - room - 1, line + 1, 0
    return span


def _if_it_says(words: str, line: int, column: int, otherwise: Span) -> Span:
    end = column + max(1, len(words))
    found = Span(otherwise.source, line, column, line, end)
    return found if otherwise.source.lines[line - 1].startswith(words, column - 1) and words else otherwise


@dataclass(frozen=True)
class Related:
    """A second place that a problem is about, and what stands there."""

    span: Span
    label: str


@dataclass(frozen=True)
class Diagnostic:
    """One problem. `path` is the data path as the author wrote it (`faults.0.for`); `label` is written beside the
    caret.

    The headline stands alone: lower case, no full stop, at most 80 characters, no advice. Advice is `help`, one line.
    """

    code: str
    headline: str
    span: Span
    path: str = ""
    help: str | None = None
    label: str = ""
    related: tuple[Related, ...] = ()


def ordered(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by position, each problem once."""
    unique = {(d.code, d.path, d.span): d for d in reversed(list(diagnostics))}
    return tuple(sorted(unique.values(), key=_position))


def _position(diagnostic: Diagnostic) -> tuple[int, int, int, str, str]:
    span = diagnostic.span
    return (span.source.rank, span.line, span.column, diagnostic.path, diagnostic.code)
