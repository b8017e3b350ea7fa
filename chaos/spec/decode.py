"""Nodes to values, driven by the settings of the classes they become.

One walk for everything: a class with settings takes a mapping, `tuple[T, ...]` a list, the rest single values
(`chaos.spec.scalars`). Only entries of faults, guards and hypotheses need more: the class whose settings they take is
chosen by a name inside them. Every refusal is collected, one per node; a value that was refused is `REFUSED` to whoever
asked for it and is not complained about again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast, get_args, get_origin

from chaos.settings import Setting
from chaos.spec.catalog import Catalog
from chaos.spec.diagnostic import Diagnostic, Span
from chaos.spec.draft import Draft, Names, Placed, Places
from chaos.spec.layout import (
    CONTROL_KEYS,
    OWN_BOUND,
    SHORTHANDS,
    Document,
    described,
    fault_settings,
    guard_settings,
    has_setting,
    home_of,
    hypothesis_settings,
    owns_bound,
)
from chaos.spec.model import FaultEntry, Guard, Hypothesis, compared_in
from chaos.spec.scalars import Form, Misfit, form_of, read_scalar, without_none
from chaos.spec.source import Entry, MappingNode, Node, RefusedNode, Scalar, SequenceNode
from chaos.spec.wording import cut, joined, nearest, shown, suggestion

T = TypeVar("T")

_LIST = Form("not-a-list", "a list", "[…]")
_MAPPING = Form("not-a-mapping", "a mapping", "{key: value}")
_BOUND_KEYS = frozenset({"at_least", "at_most"})


class _Refused:
    """The value of something that was already reported."""


REFUSED: Final = _Refused()


@dataclass(frozen=True)
class _Choice:
    """How an entry chooses its class: the key, the classes by name, and how a wrong name is reported."""

    key: str
    classes: Mapping[str, type[Any]]
    code: str
    noun: str
    shorthands: tuple[str, ...] = ()


def decode(root: Node, catalog: Catalog) -> tuple[Draft, tuple[Diagnostic, ...]]:
    """Everything of a tree that can be read, and what is wrong with the rest. Raises TypeError only for a setting of an
    unknown type.
    """
    decoder = _Decoder(catalog)
    draft = decoder.document(root)
    return draft, tuple(decoder.found)


class _Decoder:
    """One walk over one tree."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.found: list[Diagnostic] = []
        self.places: Places
        measures = catalog.measure_names()
        shorthands = tuple(name for name in SHORTHANDS if name in measures)
        self.fault_choice = _Choice("kind", catalog.fault_kinds(), "unknown-fault", "fault kind")
        self.measure_choice = _Choice("measure", measures, "unknown-measure", "measure", shorthands)
        self.entry_readers: Mapping[type, Callable[[MappingNode, str], Any]] = {
            FaultEntry: self.fault,
            Guard: self.guard,
            Hypothesis: self.hypothesis,
        }

    def document(self, root: Node) -> Draft:
        self.places = Places.of(root)
        top = self.mapping(root, Document, "")
        judged = top if top and self.version_known(top) else None
        values = self.keys(judged, described(Document), "")[0] if judged else {}
        return Draft(
            catalog=self.catalog,
            places=self.places,
            top=values,
            loads=_entries(values, "load"),
            faults=_entries(values, "faults"),
            guards=_entries(values, "guards"),
            hypotheses=_entries(values, "hypotheses"),
            load_names=_names(judged, "load"),
            fault_names=_names(judged, "faults"),
            hypothesis_names=_names(judged, "hypotheses"),
        )

    def version_known(self, top: MappingNode) -> bool:
        """Another version may mean anything by its keys, so nothing else of it is judged."""
        node = top.get("version")
        if not isinstance(node, Scalar) or node.kind != "whole" or node.text == "1":
            return True
        self.refuse("unknown-version", "version", f"version {shown(node.text)} of the format is unknown", "write `1`")
        return False

    def refuse(self, code: str, path: str, headline: str, help_text: str | None = None) -> _Refused:
        """Report a problem at a path."""
        return self.refuse_at(self.places.at(path), code, path, headline, help_text)

    def refuse_at(self, span: Span, code: str, path: str, headline: str, help_text: str | None = None) -> _Refused:
        """Report a problem at a span."""
        self.found.append(Diagnostic(code, headline, span, path, help_text))
        return REFUSED

    # Values by type

    def value(self, node: Node, wanted: Any, path: str) -> Any:
        inner, optional = without_none(wanted)
        if isinstance(node, RefusedNode):
            return REFUSED
        if isinstance(node, Scalar) and node.kind == "null":
            return None if optional else self.refuse("empty-value", path, f"{_last(path)} has no value")
        if get_origin(inner) is tuple:
            return self.sequence(node, get_args(inner)[0], path)
        if dataclasses.is_dataclass(inner):
            return self.record(node, cast("type[Any]", inner), path)
        return self.scalar(node, inner, path)

    def scalar(self, node: Node, wanted: Any, path: str) -> Any:
        if not isinstance(node, Scalar):
            return self.wrong_shape(node, form_of(wanted), path)
        value = read_scalar(node, wanted)
        if isinstance(value, Misfit):
            return self.refuse(value.code, path, value.headline, value.help)
        if isinstance(value, str) and not value.strip():
            return self.refuse("empty-value", path, f"{_last(path)} is empty")
        return value

    def wrong_shape(self, node: Node, form: Form, path: str) -> _Refused:
        """A mapping, list or single value where another of the three is due."""
        words = {MappingNode: "a mapping", SequenceNode: "a list", Scalar: "a single value"}[type(node)]
        due = form.words if len(form.words) <= 32 else "one of its choices"
        return self.refuse(form.code, path, f"{words} stands where {due} is due", f"write for example `{form.example}`")

    def sequence(self, node: Node, item: Any, path: str) -> Any:
        if path == "load" and isinstance(node, MappingNode):
            return (Placed(path, self.value(node, item, path)),)
        if not isinstance(node, SequenceNode):
            example = f"[{node.text}]" if isinstance(node, Scalar) and len(node.text) <= 24 else "[…]"
            return self.wrong_shape(node, dataclasses.replace(_LIST, example=example), path)
        if path in ("load", "faults", "hypotheses") and not node.items:
            return self.refuse("empty-list", path, f"{_last(path)} lists nothing")
        paths = [joined(path, index) for index in range(len(node.items))]
        values = [self.value(child, item, at) for child, at in zip(node.items, paths, strict=True)]
        if "." not in path and dataclasses.is_dataclass(item):
            return tuple(Placed(at, value) for at, value in zip(paths, values, strict=True))
        return REFUSED if any(value is REFUSED for value in values) else tuple(values)

    def mapping(self, node: Node, cls: type[Any], path: str) -> MappingNode | None:
        if isinstance(node, MappingNode):
            return node
        if not isinstance(node, RefusedNode):
            form = dataclasses.replace(_MAPPING, example=f"{{{described(cls)[0].key}: …}}")
            self.wrong_shape(node, form, path)
        return None

    def record(self, node: Node, cls: type[Any], path: str) -> Any:
        mapping = self.mapping(node, cls, path)
        if mapping is None:
            return REFUSED
        if cls in self.entry_readers:
            return self.entry_readers[cls](mapping, path)
        values, clean = self.keys(mapping, described(cls), path)
        return self.build(cls, values, path) if clean else REFUSED

    def build(self, cls: Callable[..., Any], values: Mapping[str, Any], path: str) -> Any:
        """Make the value; a class may refuse a combination of its settings with a ValueError in its own words."""
        try:
            return cls(**values)
        except ValueError as error:
            return self.refuse("invalid-setting", path, cut(str(error), 80))

    # Keys of a mapping

    def keys(self, node: MappingNode, settings: Sequence[Setting], path: str) -> tuple[dict[str, Any], bool]:
        """Values by field, with defaults; and whether nothing at all was refused."""
        known = {s.key: s for s in settings}
        given = {entry.key for entry in node.entries}
        missing = [s.key for s in settings if s.required and s.key not in given]
        values = {s.field: s.default for s in settings if not s.required and s.key not in given}
        before = len(self.found)
        for entry in node.entries:
            if entry.key in known:
                values[known[entry.key].field] = self.setting(entry.value, known[entry.key], joined(path, entry.key))
            else:
                guess = self.unknown_key(entry, [key for key in known if key not in given], path)
                missing = [key for key in missing if key != guess]
        for key in missing:
            self.missing_key(node, key, path, f"add `{key}:`, {known[key].doc}")
        readable = {field: value for field, value in values.items() if value is not REFUSED}
        return readable, len(readable) == len(values) and len(self.found) == before

    def setting(self, node: Node, described_by: Setting, path: str) -> Any:
        value = self.value(node, described_by.type, path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        least, most = described_by.least, described_by.most
        if least is not None and value < least:
            return self.refuse("out-of-range", path, f"{shown(str(value))} is less than {least:g}", _range(least, most))
        if most is not None and value > most:
            return self.refuse("out-of-range", path, f"{shown(str(value))} is more than {most:g}", _range(least, most))
        return value

    def unknown_key(self, entry: Entry, free: Sequence[str], path: str) -> str | None:
        """Report it, and say which missing key it is a slip for."""
        guess = nearest(entry.key, free)
        home = home_of(entry.key) if guess is None else None
        elsewhere = f"`{entry.key}` belongs under `{home}`" if home else None
        self.refuse_at(
            entry.key_span,
            "unknown-key",
            joined(path, entry.key),
            f"unknown key {shown(entry.key)}",
            elsewhere or suggestion(entry.key, free),
        )
        return guess

    def missing_key(self, node: MappingNode, key: str, path: str, help_text: str) -> _Refused:
        return self.refuse_at(node.span.start(), "missing-key", joined(path, key), f"missing key `{key}`", help_text)

    # Entries whose class is chosen by a name inside them

    def chosen(self, node: MappingNode, choice: _Choice, path: str) -> type[Any] | None:
        """The class an entry names. When it names none, that is the only thing said about the entry."""
        node_of_name = node.get(choice.key)
        short = next((e.key for e in node.entries if e.key in choice.shorthands), None)
        if node_of_name is None and short is not None:
            return choice.classes[short]
        if node_of_name is None:
            self.nothing_chosen(node, choice, path)
            return None
        name = self.value(node_of_name, str, joined(path, choice.key))
        if name is REFUSED:
            return None
        if name in choice.classes:
            return choice.classes[name]
        headline = f"unknown {choice.noun} {shown(name)}"
        self.refuse(choice.code, joined(path, choice.key), headline, suggestion(name, choice.classes))
        return None

    def nothing_chosen(self, node: MappingNode, choice: _Choice, path: str) -> None:
        slip = next((e for e in node.entries if nearest(e.key, [choice.key, *choice.shorthands])), None)
        if slip:
            self.unknown_key(slip, [choice.key, *choice.shorthands], path)
        else:
            self.missing_key(node, choice.key, path, f"add `{choice.key}:` with a {choice.noun}")

    def fault(self, node: MappingNode, path: str) -> Any:
        cls = self.chosen(node, self.fault_choice, path)
        if cls is None:
            return REFUSED
        values, clean = self.keys(node, fault_settings(cls), path)
        if not clean:
            return REFUSED
        fault = self.build(cls, _only(values, cls), path)
        return REFUSED if fault is REFUSED else FaultEntry(**_only(values, FaultEntry), fault=fault)

    def guard(self, node: MappingNode, path: str) -> Any:
        cls = self.chosen(node, self.measure_choice, path)
        return REFUSED if cls is None else self.measured(node, cls, Guard, guard_settings(cls), path)

    def hypothesis(self, node: MappingNode, path: str) -> Any:
        cls = self.chosen(node, self.measure_choice, path)
        if cls is None:
            return REFUSED
        controls = [e for e in node.entries if e.key in CONTROL_KEYS]
        if controls and not compared_in(cls):
            headline = f"`{cls.name}` cannot be held against a control"
            return self.refuse_at(controls[0].key_span, "no-comparison", joined(path, controls[0].key), headline)
        settings = hypothesis_settings(cls, compares=bool(controls))
        if not owns_bound(cls) or not (foreign := [e for e in node.entries if e.key in _BOUND_KEYS]):
            return self.measured(node, cls, Hypothesis, settings, path)
        way_out = f"bound it with `{OWN_BOUND}`" if has_setting(cls, OWN_BOUND) else "remove it: it means none at all"
        for entry in foreign:
            headline = f"`{cls.name}` takes no `{entry.key}`"
            self.refuse_at(entry.key_span, "foreign-bound", joined(path, entry.key), headline, way_out)
        rest = tuple(e for e in node.entries if e.key not in _BOUND_KEYS)
        self.keys(dataclasses.replace(node, entries=rest), settings, path)
        return REFUSED

    def measured(
        self, node: MappingNode, cls: type[Any], whole: type[Any], settings: Sequence[Setting], path: str
    ) -> Any:
        """A guard or hypothesis: the measure from its own settings, the rest from the common ones."""
        values, clean = self.keys(node, settings, path)
        if not clean:
            return REFUSED
        measure = self.build(cls, _only(values, cls), path)
        if measure is REFUSED:
            return REFUSED
        common = {field.name for field in dataclasses.fields(whole)} - {"measure"}
        return whole(measure=measure, **{k: v for k, v in values.items() if k in common})


def _only(values: Mapping[str, Any], cls: type) -> dict[str, Any]:
    fields = {s.field for s in described(cls)}
    return {field: value for field, value in values.items() if field in fields}


def _entries(values: Mapping[str, Any], field: str) -> tuple[Placed[Any], ...]:
    return tuple(placed for placed in values.get(field, ()) if placed.value is not REFUSED)


def _names(top: MappingNode | None, section: str) -> Names:
    """The `name` of every entry, whether or not the rest of the entry could be read."""
    node = top.get(section) if top else None
    if isinstance(node, MappingNode):
        entries: dict[str, Node] = {section: node}
    else:
        items = node.items if isinstance(node, SequenceNode) else ()
        entries = {joined(section, index): item for index, item in enumerate(items)}
    found = {path: item.get("name") if isinstance(item, MappingNode) else None for path, item in entries.items()}
    readable = {
        joined(path, "name"): name.text for path, name in found.items() if isinstance(name, Scalar) and name.text
    }
    return Names(readable, complete=node is not None and len(readable) == len(entries) > 0)


def _last(path: str) -> str:
    return shown(path.rpartition(".")[2], 40)


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"use {least:g} to {most:g}"
    return f"use {least:g} or more" if most is None else f"use {most:g} or less"
