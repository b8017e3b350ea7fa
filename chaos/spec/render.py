"""Diagnostics as text for people, one line for editors, JSON, and annotations for CI: four views of the same value.

error[unknown-fault]: unknown fault kind `proces_kill`
 --> experiments/worker_loss.yaml:4:11 (faults.0.kind)
  |
4 |   - kind: proces_kill
  |           ^^^^^^^^^^^
  = help: did you mean `process_kill`?
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from chaos.spec.diagnostic import Diagnostic, Related, Span

WIDEST_LINE = 140
_CONTEXT = 50


def render_full(diagnostics: Iterable[Diagnostic]) -> str:
    """Everything, with the lines of the file; an empty line parts the blocks. Ends with a line break unless empty."""
    return "\n".join("\n".join(_block(d)) + "\n" for d in diagnostics)


def render_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """`path:line:column: error[code]: headline`, one a line."""
    return "".join(f"{_where(d.span)}: error[{d.code}]: {d.headline}\n" for d in diagnostics)


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands that put each problem on its line of a pull request."""
    return "".join(_annotation(d) + "\n" for d in diagnostics)


def to_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """The stable record of each problem: code, headline, path, file, position, help, label, related places."""
    return [
        {
            "code": d.code,
            "headline": d.headline,
            "path": d.path,
            **_position(d.span),
            "help": d.help,
            "label": d.label or None,
            "related": [{**_position(r.span), "label": r.label} for r in d.related],
        }
        for d in diagnostics
    ]


def _where(span: Span) -> str:
    return f"{span.source.label}:{span.line}:{span.column}"


def _position(span: Span) -> dict[str, Any]:
    return {
        "file": span.source.label,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _block(diagnostic: Diagnostic) -> Iterator[str]:
    gutter = max(len(str(span.line)) for span in (diagnostic.span, *(r.span for r in diagnostic.related)))
    pad = " " * gutter
    suffix = f" ({diagnostic.path})" if diagnostic.path else ""
    yield f"error[{diagnostic.code}]: {diagnostic.headline}"
    yield f"{pad}--> {_where(diagnostic.span)}{suffix}"
    yield f"{pad} |"
    yield from _quoted(diagnostic.span, "^", diagnostic.label, gutter)
    for related in diagnostic.related:
        yield from _second(related, diagnostic.span, gutter)
    if diagnostic.help:
        yield f"{pad} = help: {diagnostic.help}"


def _second(related: Related, first: Span, gutter: int) -> Iterator[str]:
    """A related place: its own line, or only marks when the line is already there."""
    line, marks = _quoted(related.span, "-", related.label, gutter)
    if related.span.source != first.source:
        yield f"{' ' * gutter}::: {_where(related.span)}"
    elif related.span.line != first.line:
        yield f"{' ' * gutter} |"
    if (related.span.source, related.span.line) != (first.source, first.line):
        yield line
    yield marks


def _quoted(span: Span, mark: str, label: str, gutter: int) -> tuple[str, str]:
    """The line of a span, and the line of marks below it."""
    lines = span.source.lines
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    start = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line else len(line.rstrip())
    line, start, end = _narrowed(line, start, max(end, start + 1))
    marks = " " * _width(line[:start]) + mark * max(1, _width(line[start:end]))
    return f"{span.line:>{gutter}} | {_printable(line)}".rstrip(), f"{' ' * gutter} | {marks} {label}".rstrip()


def _narrowed(line: str, start: int, end: int) -> tuple[str, int, int]:
    """A very long line cut to the part around the marks."""
    if len(line) <= WIDEST_LINE:
        return line, start, end
    left = max(0, start - _CONTEXT)
    piece = line[left : left + WIDEST_LINE]
    head = "…" if left else ""
    tail = "…" if left + WIDEST_LINE < len(line) else ""
    shift = len(head) - left
    return head + piece + tail, start + shift, min(end + shift, len(head) + len(piece))


def _printable(line: str) -> str:
    """The line with every character one that a terminal shows: a tab as one space, what cannot be shown as U+FFFD."""
    return "".join(" " if c == "\t" else c if c.isprintable() else "\ufffd" for c in line)


def _width(text: str) -> int:
    """Columns on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _annotation(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    message = diagnostic.headline + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")
    end = f",endColumn={span.end_column}" if span.end_line == span.line else ""
    place = f"file={_property(span.source.label)},line={span.line},endLine={span.end_line},col={span.column}{end}"
    return f"::error {place},title={_property(diagnostic.code)}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
