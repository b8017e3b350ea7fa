"""The parser's complaints in our words.

libyaml and PyYAML name what their grammar wanted; an author needs to know which line is wrong and what usually causes
it. Each row maps a piece of the parser's text to our headline; what is not listed gets a plain sentence, never the
parser's own.
"""

from __future__ import annotations

from typing import Any

from chaos.spec.diagnostic import Diagnostic, Source, Span

_ROWS: tuple[tuple[str, str, str | None], ...] = (
    ("mapping values are not allowed", "a `:` stands where no key can be", "quote the text if it holds `: `"),
    ("could not find expected ':'", "a key without its `:`", "write `key: value`"),
    ("expected key", "this line does not fit the ones around it", "align it with the keys that it belongs to"),
    ("expected <block end>", "this line does not fit the ones around it", "align it with the keys that it belongs to"),
    ("expected '-' indicator", "this line does not fit the list around it", "start each item with `- ` in one column"),
    ("sequence entries are not allowed", "a list cannot start here", "start the list on a line of its own"),
    ("',' or '}'", "a `{` is never closed, or a comma is missing", "separate entries with `, ` and close with `}`"),
    ("',' or ']'", "a `[` is never closed, or a comma is missing", "separate items with `, ` and close with `]`"),
    ("unknown escape character", "an unknown escape follows a `\\`", "use 'single quotes', where `\\` means itself"),
    ("node content", "a value is missing here", None),
    ("<document start>", "text follows the end of the document", "remove the `...` above it"),
    ("Unicode character escape code", "an escape names no character", None),
    ("cannot start any token", "a plain value cannot start with this character", "put the value into quotes"),
)
_UNCLOSED = ("a quote is opened and never closed", "close it before the end of the value")
_TAG_HANDLE = "undefined tag handle"


def syntax_problem(source: Source, error: Exception) -> Diagnostic:
    """The diagnostic for an exception of the parser."""
    text = str(getattr(error, "problem", "") or "")
    span = _span(source, getattr(error, "problem_mark", None))
    if _indented_with_tab(span):
        return Diagnostic("tab-indent", "a tab indents this line", _tab(span), help="indent with spaces")
    if "nesting depth" in text:
        return Diagnostic("too-deep", "nested far deeper than any experiment needs", span)
    if _TAG_HANDLE in text:
        return Diagnostic(
            "tag-used", "a tag", span, help="remove it; the key alone decides what kind of value it takes"
        )
    if "quoted scalar" in str(getattr(error, "context", "")) and "end of stream" in text:
        return Diagnostic(
            "bad-syntax", _UNCLOSED[0], _span(source, getattr(error, "context_mark", None)), help=_UNCLOSED[1]
        )
    opened = getattr(error, "context_mark", None)
    if "flow" in str(getattr(error, "context", "")) and opened and opened.line + 1 < span.line:
        span = _span(source, opened)  # the bracket itself tells more than the line where the parser gave up
    for piece, headline, help_text in _ROWS:
        if piece in text:
            return Diagnostic("bad-syntax", headline, span, help=help_text)
    return Diagnostic("bad-syntax", "this is not valid YAML", span)


def _span(source: Source, mark: Any) -> Span:
    if mark is None:
        return Span(source, 1, 1, 1, 2)
    return Span(source, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)


def _line(span: Span) -> str:
    lines = span.source.lines
    return lines[span.line - 1] if span.line <= len(lines) else ""


def _indented_with_tab(span: Span) -> bool:
    line = _line(span)
    return "\t" in line[: len(line) - len(line.lstrip())]


def _tab(span: Span) -> Span:
    column = _line(span).index("\t") + 1
    return Span(span.source, span.line, column, span.line, column + 1)
