"""`--set faults.outage.for=10s`: values from the command line, put into the tree before it is decoded.

Because an option becomes nodes like any other text, it is checked by the same types and rules, and what is wrong with
it is shown with a caret under the option itself. A part of the path is a key, or an item of a list by its index or by
its `name`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chaos.spec.diagnostic import Diagnostic, Source, Span
from chaos.spec.source import Entry, MappingNode, Node, RefusedNode, Scalar, SequenceNode, read
from chaos.spec.wording import joined, shown, suggestion

LABEL = "--set"

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./%;,-]*( [A-Za-z0-9_./%;,-]+)*")
_NOWHERE = Source("", "").point(0)


def apply_overrides(root: Node, options: Sequence[str]) -> tuple[Node, tuple[Diagnostic, ...]]:
    """The tree with every option in place, in order; an option that is wrong changes nothing and is reported."""
    found: list[Diagnostic] = []
    for rank, option in enumerate(options, start=1):
        source = Source(LABEL, option, rank)
        try:
            root = _applied(root, source)
        except _Misplaced as stop:
            found += stop.diagnostics
    return root, tuple(found)


class _Misplaced(Exception):  # a stop signal inside this module, not an error that anyone sees
    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(diagnostics[0].code)
        self.diagnostics = diagnostics


@dataclass(frozen=True)
class _Part:
    """One part of a path and where it stands in the option."""

    text: str
    span: Span


def _applied(root: Node, source: Source) -> Node:
    path, equals, value_text = source.text.partition("=")
    if not equals or not path.strip() or not value_text.strip():
        headline = f"{shown(source.text)} is not KEY=VALUE"
        raise _Misplaced(
            Diagnostic(
                "bad-override",
                headline,
                source.point(0).until(source.point(max(0, len(source.text) - 1))),
                help="write for example `faults.0.for=10s`",
            )
        )
    value, problems = read(source, skip=len(path) + 1)
    if value is None or problems:
        raise _Misplaced(*(replace(problem, path=path) for problem in problems))
    return _with(root, tuple(_parts(path, source)), "", value)


def _parts(path: str, source: Source) -> Iterator[_Part]:
    start = 0
    for text in path.split("."):
        column = source.point(start).column
        line = source.point(start).line
        yield _Part(text, Span(source, line, column, line, column + max(1, len(text))))
        start += len(text) + 1


def _with(node: Node, parts: tuple[_Part, ...], path: str, value: Node) -> Node:
    """The node with `value` at the end of the path."""
    if not parts:
        return value
    if path == "load" and isinstance(node, MappingNode) and _names_single_load(node, parts[0]):
        return _with(node, parts[1:], path, value)
    if isinstance(node, MappingNode):
        return _with_key(node, parts, path, value)
    if isinstance(node, SequenceNode):
        return _with_item(node, parts, path, value)
    if isinstance(node, Scalar) and node.kind == "null":
        return _with_key(MappingNode((), node.span, flow=False), parts, path, value)
    headline = f"nothing is below {shown(path, 40)}"
    raise _Misplaced(Diagnostic("unknown-override", headline, parts[0].span, joined(path, parts[0].text)))


def _names_single_load(node: MappingNode, part: _Part) -> bool:
    """A file with one load may write it without a list; `load.0` and `load.NAME` mean it all the same."""
    return node.get(part.text) is None and part.text in ("0", _name(node))


def _with_key(node: MappingNode, parts: tuple[_Part, ...], path: str, value: Node) -> MappingNode:
    part, deeper = parts[0], joined(path, parts[0].text)
    old = node.get(part.text)
    # What is not there yet is made; whether the key may exist at all is for the decoder to say.
    new = _with(MappingNode((), part.span, flow=False) if old is None else old, parts[1:], deeper, value)
    if old is None:
        return replace(node, entries=(*node.entries, Entry(part.text, part.span, new)))
    entries = (replace(entry, value=new) if entry.key == part.text else entry for entry in node.entries)
    return replace(node, entries=tuple(entries))


def _with_item(node: SequenceNode, parts: tuple[_Part, ...], path: str, value: Node) -> SequenceNode:
    part, names = parts[0], [_name(item) for item in node.items]
    known = [str(index) for index in range(len(names))]
    if part.text not in known and part.text not in names:
        headline = f"no item {shown(part.text)} in {shown(path, 40)}"
        help_text = suggestion(part.text, [name for name in names if name] or known)
        raise _Misplaced(Diagnostic("unknown-override", headline, part.span, joined(path, part.text), help_text))
    index = known.index(part.text) if part.text in known else names.index(part.text)
    new = _with(node.items[index], parts[1:], joined(path, index), value)
    return replace(node, items=(*node.items[:index], new, *node.items[index + 1 :]))


def _name(node: Node) -> str | None:
    name = node.get("name") if isinstance(node, MappingNode) else None
    return name.text if isinstance(name, Scalar) else None


def written_out(root: Node, label: str, options: Sequence[str]) -> str:
    """The file that stands for a text with options: what a run stores, so that it can be judged again without them.

    Comments of the author's file are not in the tree, hence not in it.
    """
    said = "".join(f"# {LABEL} {' '.join(option.split())}\n" for option in options)
    return f"{_header(label)}\n{said}" + "".join(f"{line}\n" for line in _block(root))


def label_of(text: str, label: str) -> str:
    """What to call a text of an experiment: the file's label, or that label with options when it was written out."""
    return f"{label} with {LABEL}" if text.startswith(_header(label)) else label


def _header(label: str) -> str:
    return f"# {label} with options:"


def _block(node: Node) -> Iterator[str]:
    """A node as YAML in block style, one line at a time."""
    if isinstance(node, MappingNode) and node.entries:
        for entry in node.entries:
            yield from _headed(f"{_text(entry.key)}:", entry.value, "  ")
    elif isinstance(node, SequenceNode) and node.items:
        for item in node.items:
            yield from _headed("-", item, "  ")
    else:
        yield _single(node)


def _headed(head: str, node: Node, indent: str) -> Iterator[str]:
    lines = list(_block(node))
    if len(lines) == 1 and lines[0] == _single(node):
        yield f"{head} {lines[0]}".rstrip()
    elif head == "-":
        yield f"- {lines[0]}"
        yield from (indent + line for line in lines[1:])
    else:
        yield head
        yield from (indent + line for line in lines)


def _single(node: Node) -> str:
    if isinstance(node, Scalar):
        return _text(node.text) if node.kind == "text" else node.text
    return "null" if isinstance(node, RefusedNode) else "[]" if isinstance(node, SequenceNode) else "{}"


def _text(text: str) -> str:
    """Text as YAML reads it back: plain where nobody could doubt it, else in JSON's quotes, which YAML knows."""
    plain = _PLAIN.fullmatch(text) and Scalar(text, plain=True, span=_NOWHERE).kind == "text"
    return text if plain else json.dumps(text, ensure_ascii=False)
