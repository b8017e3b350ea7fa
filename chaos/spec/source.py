"""YAML text to nodes that know where every key and value stands.

The nodes are built from the parser's events, not from PyYAML's own tree: events still show anchors and tags, nothing is
expanded or guessed, and the walk stops at a depth of our choosing. What YAML could surprise an author with is refused
by name: duplicate keys, anchors, aliases, tags, directives, several documents. A scalar stays the text that was
written; `Scalar.kind` tells the four readings we know (true/false, decimal numbers, null, text) and no YAML 1.1 guess
such as `on`, `017` or `12:30`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from chaos.spec.diagnostic import Diagnostic, Related, Source, Span
from chaos.spec.syntax import syntax_problem
from chaos.spec.wording import joined, shown

DEEPEST = 24

# libyaml gives the same events and marks as the pure parser, about eight times faster.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}")

ScalarKind = Literal["null", "boolean", "whole", "decimal", "text"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as written. `plain` means without quotes."""

    text: str
    plain: bool
    span: Span

    @property
    def kind(self) -> ScalarKind:
        """What an unquoted value is, by the few rules we have."""
        if not self.plain:
            return "text"
        if self.text in ("", "null"):
            return "null"
        if self.text in ("true", "false"):
            return "boolean"
        if _WHOLE.fullmatch(self.text):
            return "whole"
        return "decimal" if _DECIMAL.fullmatch(self.text) else "text"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value."""

    key: str
    key_span: Span
    value: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Keys and values in the order of the file, each key once."""

    entries: tuple[Entry, ...]
    span: Span
    flow: bool

    def get(self, key: str) -> Node | None:
        """The value of a key, or None when the key is not there."""
        return next((entry.value for entry in self.entries if entry.key == key), None)


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """The items of a list."""

    items: tuple[Node, ...]
    span: Span
    flow: bool


@dataclass(frozen=True, slots=True)
class RefusedNode:
    """Something that was already reported; whoever meets it says nothing more about it."""

    span: Span


Node = Scalar | MappingNode | SequenceNode | RefusedNode


def decoded(raw: bytes, label: str) -> Source | Diagnostic:
    """The text of a file's bytes, without a byte order mark."""
    try:
        return Source(label, raw.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        source = Source(label, raw.decode("utf-8", errors="replace").removeprefix("\ufeff"))
        index = len(raw[: error.start].decode("utf-8").removeprefix("\ufeff"))
        headline = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        return Diagnostic("not-utf-8", headline, source.point(index), help="save the file as UTF-8")


def read(source: Source, *, skip: int = 0) -> tuple[Node | None, tuple[Diagnostic, ...]]:
    """The tree of a text and all that is wrong with it as YAML; None when there is no tree to go on with. Never raises.

    `skip` characters at the start are not YAML (the `key=` of an option); positions still count them.
    """
    strange = _UNPRINTABLE.search(source.text)
    if strange:
        return None, (_bad_character(strange[0], source.point(strange.start())),)
    builder = _Builder(source, " " * skip + source.text[skip:])
    try:
        return builder.document(), tuple(builder.found)
    except _Unreadable as stop:
        return None, (stop.diagnostic,)
    except (yaml.YAMLError, ValueError) as error:  # the pure parser lets ValueError out for impossible escapes
        return None, (syntax_problem(source, error),)


def _bad_character(character: str, span: Span, path: str = "") -> Diagnostic:
    return Diagnostic(
        "bad-character", f"character U+{ord(character):04X} cannot be printed", span, path, help="remove it"
    )


class _Unreadable(Exception):  # a stop signal inside this module, not an error that anyone sees
    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.code)
        self.diagnostic = diagnostic


class _Builder:
    """One pass over the events of one text."""

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self.found: list[Diagnostic] = []

    def document(self) -> Node:
        """The only document of the stream. Raises _Unreadable and whatever the parser raises."""
        next(self.events)  # the stream starts
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            raise _Unreadable(Diagnostic("empty-file", "nothing is written here", self._span(start).start()))
        if start.version or start.tags:
            self._refuse(
                "directive-used", "a `%` directive changes how the file is read", self._span(start), "", "remove it"
            )
        top = self._node(next(self.events), "", 0)
        if isinstance(top, Scalar) and top.kind == "null":
            raise _Unreadable(Diagnostic("empty-file", "nothing is written here", top.span.start()))
        next(self.events)  # the document ends
        after = next(self.events)
        if isinstance(after, yaml.DocumentStartEvent):
            help_text = "put each experiment into a file of its own"
            self._refuse("several-documents", "a second document starts here", self._span(after), "", help_text)
        return top

    def _span(self, event: Any, last: Any = None) -> Span:
        start, end = event.start_mark, (last or event).end_mark
        return Span(self.source, start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def _refuse(self, code: str, headline: str, span: Span, path: str, help_text: str | None) -> None:
        self.found.append(Diagnostic(code, headline, span, path, help_text))

    def _node(self, event: Any, path: str, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            self._refuse("alias-used", "an alias hides what is meant", self._span(event), path, "write the value out")
            return RefusedNode(self._span(event))
        self._check_marks(event, path)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if depth == DEEPEST:
            headline, top_key = f"nested deeper than {DEEPEST} levels", path.partition(".")[0]
            raise _Unreadable(Diagnostic("too-deep", headline, self._span(event).start(), top_key))
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, path, depth)
        return self._mapping(event, path, depth)

    def _check_marks(self, event: Any, path: str) -> None:
        if event.anchor is not None:
            help_text = "remove it, and write the value out where it is used"
            self._refuse(
                "anchor-used", f"anchor {shown('&' + event.anchor)}", self._span(event).start(), path, help_text
            )
        if event.tag is not None:
            help_text = "remove it; the key alone decides what kind of value it takes"
            self._refuse("tag-used", f"tag {shown(event.tag)}", self._span(event).start(), path, help_text)

    def _scalar(self, event: Any, path: str) -> Node:
        span = self._span(event)
        strange = _UNPRINTABLE.search(event.value)
        if strange:
            self.found.append(_bad_character(strange[0], span, path))
            return RefusedNode(span)
        return Scalar(event.value, event.style in (None, ""), span)

    def _sequence(self, start: Any, path: str, depth: int) -> SequenceNode:
        items: list[Node] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._node(event, joined(path, len(items)), depth + 1))
        return SequenceNode(
            tuple(items), self._whole(start, event, items[-1] if items else None), bool(start.flow_style)
        )

    def _mapping(self, start: Any, path: str, depth: int) -> MappingNode:
        entries: dict[str, Entry] = {}
        value: Node | None = None
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, key_span = self._key(event, path, depth)
            value = self._node(next(self.events), joined(path, key or "?"), depth + 1)
            if key in entries:
                self._refuse_second(entries[key], key_span, joined(path, key))
            elif key is not None:
                entries[key] = Entry(key, key_span, value)
        return MappingNode(tuple(entries.values()), self._whole(start, event, value), bool(start.flow_style))

    def _whole(self, start: Any, end: Any, last: Node | None) -> Span:
        # A block ends where its last value ends; its end event stands at whatever comes after it.
        return self._span(start, end) if start.flow_style or last is None else self._span(start).until(last.span)

    def _key(self, event: Any, path: str, depth: int) -> tuple[str | None, Span]:
        node = self._node(event, path, depth + 1)
        if isinstance(node, Scalar) and node.text:
            return node.text, node.span
        if not isinstance(node, RefusedNode):
            headline = "a key is empty" if isinstance(node, Scalar) else "a list or mapping stands where a key is due"
            self._refuse("bad-key", headline, node.span.start(), path, None)
        return None, node.span

    def _refuse_second(self, first: Entry, span: Span, path: str) -> None:
        related = (Related(first.key_span, "first given here"),)
        headline = f"key {shown(first.key)} is given twice, first in line {first.key_span.line}"
        self.found.append(Diagnostic("duplicate-key", headline, span, path, "keep one of the two", related=related))
