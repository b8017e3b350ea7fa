"""What could be read of a file, with the way back to its text: the input of the cross-field rules.

Rules run even when parts of the file were refused, so that all problems come at once. A refused entry is simply not
here; its name still is, when it could be read, and `Names.complete` says whether a list of names can be relied on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from chaos.spec.catalog import Catalog
from chaos.spec.diagnostic import Diagnostic, Related, Span
from chaos.spec.model import BlastRadius, FaultEntry, Guard, Hypothesis, Load, Windows
from chaos.spec.source import MappingNode, Node, RefusedNode, Scalar, SequenceNode
from chaos.spec.wording import joined

T = TypeVar("T")


@dataclass(frozen=True)
class Placed(Generic[T]):
    """A decoded entry and its data path."""

    path: str
    value: T

    def at(self, key: str) -> str:
        """The path of one of its keys."""
        return joined(self.path, key)


@dataclass(frozen=True)
class Places:
    """Where every data path stands in the text."""

    spans: Mapping[str, Span]

    @classmethod
    def of(cls, root: Node) -> Places:
        """Index a tree."""
        return cls({path: _caret(node, key) for path, node, key in _walk(root, "", None)})

    def at(self, path: str) -> Span:
        """The span of a path, or of the nearest part above it that is written out."""
        while path and path not in self.spans:
            path = path.rpartition(".")[0]
        return self.spans[path]

    def lines(self) -> dict[str, int]:
        """Path to line in the file; what an option set stands where its parent does."""
        return {path: self._line(path) for path in self.spans if path}

    def _line(self, path: str) -> int:
        while path and self.spans[path].source.rank:
            path = path.rpartition(".")[0]
        return self.spans[path].line


def _walk(node: Node, path: str, key: Span | None) -> Iterator[tuple[str, Node, Span | None]]:
    yield path, node, key
    if isinstance(node, MappingNode):
        for entry in node.entries:
            yield from _walk(entry.value, joined(path, entry.key), entry.key_span)
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.items):
            yield from _walk(item, joined(path, index), None)


def _caret(node: Node, key: Span | None) -> Span:
    """What to underline: the value when it stands on one line, else its key, else its first character."""
    inline = isinstance(node, Scalar | RefusedNode) or node.flow
    if inline and not node.span.empty and node.span.line == node.span.end_line:
        return node.span
    return key if key is not None and key.source == node.span.source else node.span.start()


@dataclass(frozen=True)
class Names:
    """The names that a list of entries gives, with their paths. `complete`: every entry's name could be read."""

    by_path: Mapping[str, str]
    complete: bool

    @cached_property
    def known(self) -> frozenset[str]:
        """The names alone."""
        return frozenset(self.by_path.values())


@dataclass(frozen=True)
class Draft:
    """The readable part of an experiment file. `top` holds the top-level values that could be read, by field."""

    catalog: Catalog
    places: Places
    top: Mapping[str, Any]
    loads: tuple[Placed[Load], ...]
    faults: tuple[Placed[FaultEntry], ...]
    guards: tuple[Placed[Guard], ...]
    hypotheses: tuple[Placed[Hypothesis], ...]
    load_names: Names
    fault_names: Names
    hypothesis_names: Names

    @property
    def blast_radius(self) -> BlastRadius | None:
        """None when it could not be read."""
        return self.top.get("blast_radius")

    @property
    def windows(self) -> Windows | None:
        """None when they could not be read."""
        return self.top.get("windows")

    def problem(
        self,
        code: str,
        path: str,
        headline: str,
        *,
        help_text: str | None = None,
        label: str = "",
        related: Mapping[str, str] | None = None,
    ) -> Diagnostic:
        """A diagnostic at a data path; `related` maps further paths to what stands there."""
        others = tuple(Related(self.places.at(other), text) for other, text in (related or {}).items())
        return Diagnostic(code, headline, self.places.at(path), path, help_text, label, others)
