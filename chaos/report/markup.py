"""HTML from values: every text that comes from outside is escaped, and there is no other way into a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Markup(str):
    """Text that is markup already; everything else gets escaped."""

    __slots__ = ()


def tag(truth: str) -> Markup:
    """A coloured verdict."""
    return Markup(f'<span class="tag {escape(truth)}">{escape(truth)}</span>')


def quiet(text: str) -> str:
    """A paragraph that steps back."""
    return f'<p class="quiet">{escape(text)}</p>'


def cell(value: object) -> str:
    """Markup as it is, anything else escaped."""
    return value if isinstance(value, Markup) else escape(str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table that scrolls by itself on a narrow screen."""
    return f'<div class="wide">{_table(head, _lines(rows))}</div>'


def tall_table(head: Sequence[str], rows: Iterable[Sequence[object]], name: str, label: str) -> str:
    """A table of many rows that scrolls in both directions; `name` is what the script finds it by."""
    inside = _table(head, _lines(rows), f' id="{name}"')
    return f'<div class="wide tall" tabindex="0" role="region" aria-label="{escape(label)}">{inside}</div>'


def cards(head: Sequence[str], rows: Iterable[Sequence[object]], name: str) -> str:
    """A table whose rows become cards on a narrow screen; each row is `name`-1, `name`-2, ... for links."""
    lines = (
        f'<tr id="{name}-{number}">'
        + "".join(
            f'<td data-label="{escape(title)}">{cell(value)}</td>' for title, value in zip(head, row, strict=True)
        )
        + "</tr>"
        for number, row in enumerate(rows, 1)
    )
    inside = _table(head, lines, f' id="{name}" class="cards"')
    return f'<div class="wide">{inside}</div>'


def _lines(rows: Iterable[Sequence[object]]) -> Iterable[str]:
    return ("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows)


def _table(head: Sequence[str], lines: Iterable[str], attributes: str = "") -> str:
    top = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "\n".join(lines)
    return f"<table{attributes}>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def bullets(items: Iterable[tuple[object, str]]) -> str:
    """Each a name and what is to be said about it."""
    return "<ul>\n" + "\n".join(f"<li><strong>{cell(n)}</strong>{escape(text)}</li>" for n, text in items) + "\n</ul>"
