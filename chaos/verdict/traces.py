"""Who called whom for one request: the spans of a trace as a tree, from what every hop wrote down. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from chaos.journal.record import Span
from chaos.journal.spans import SpanTable


@dataclass(frozen=True)
class Branch:
    """A span with what happened under it, in order of time."""

    span: Span
    under: tuple[Branch, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Span]]:
        """This span and all under it with their depths, each before what it caused."""
        yield depth, self.span
        for branch in self.under:
            yield from branch.walk(depth + 1)


def tree_of(trace_id: str, spans: SpanTable) -> tuple[Branch, ...]:
    """The calls of one trace. Its roots are the spans whose parent nobody wrote down, such as each send of a client."""
    return trees_of((trace_id,), spans)[trace_id]


def trees_of(trace_ids: Iterable[str], spans: SpanTable) -> Mapping[str, tuple[Branch, ...]]:
    """The trees of several traces, in one look at the table; a trace that left no span has no roots."""
    found: dict[str, list[Span]] = {trace_id: [] for trace_id in trace_ids}
    for span in spans.of_traces(found).rows():
        found[span.trace_id].append(span)
    return {trace_id: _grow(each) for trace_id, each in found.items()}


def _grow(spans: Sequence[Span]) -> tuple[Branch, ...]:
    """Spans that name each other in a circle, which only a liar writes, hang under nobody and are left out."""
    known = {span.span_id for span in spans}
    under: dict[str, list[Span]] = {}
    roots: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start_s, span.kind, span.span_id)):
        (under.setdefault(span.parent_id, []) if span.parent_id in known else roots).append(span)

    def branch(span: Span) -> Branch:
        return Branch(span, tuple(branch(each) for each in under.pop(span.span_id, ())))

    return tuple(branch(span) for span in roots)
