"""JSON Schema (draft 2020-12) of the experiment file, made from the same settings as the decoder, so that editors can
complete and check.

A schema cannot say everything: cross-field rules stay with `brownout check`. What the schema refuses, the decoder
refuses too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from chaos.settings import Setting
from chaos.spec.catalog import Catalog
from chaos.spec.describe import default_words
from chaos.spec.layout import (
    CONTROL_KEYS,
    SHORTHANDS,
    Document,
    described,
    fault_settings,
    guard_settings,
    hypothesis_settings,
    owns_bound,
)
from chaos.spec.model import FaultEntry, Guard, Hypothesis, Measure, compared_in
from chaos.spec.scalars import form_of, without_none
from chaos.units import Duration, Rate, Ratio, Size

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_NUMBER = r"^[0-9]+(\.[0-9]+)?"
_PATTERNS: Mapping[Any, str] = {
    Duration: _NUMBER + "(us|ms|s|m|h)$",
    Rate: _NUMBER + "/(s|m|h)$",
    Ratio: _NUMBER + "%$",
    Size: _NUMBER + "(B|KB|MB|GB|KiB|MiB|GiB)$",
}
_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string", "minLength": 1},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}

Schema = dict[str, Any]


def json_schema(catalog: Catalog) -> Schema:
    """The schema for the faults and measures of a catalog. Raises TypeError for a setting of a type that cannot be
    written.
    """
    writer = _Writer(catalog)
    top = writer.mapping(described(Document))
    return {"$schema": DIALECT, "title": "Brownout experiment", **top}


class _Writer:
    """Types to schemas; only entries that depend on a name need the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.entries: Mapping[type, Any] = {
            FaultEntry: lambda: _one_of(self.fault(kind, cls) for kind, cls in catalog.fault_kinds().items()),
            Guard: lambda: _one_of(self.guard(cls) for cls in catalog.measures if cls.needs_window),
            Hypothesis: lambda: _one_of(schema for cls in catalog.measures for schema in self.hypotheses(cls)),
        }

    def mapping(self, settings: Iterable[Setting], **extra: Any) -> Schema:
        """An object with exactly these keys."""
        listed = list(settings)
        return {
            "type": "object",
            "properties": {s.key: self.described(s) for s in listed},
            "required": [s.key for s in listed if s.required],
            "additionalProperties": False,
            **extra,
        }

    def described(self, setting: Setting) -> Schema:
        """One setting with its doc, bounds and default."""
        schema = self.of_type(setting.type) | {"description": setting.doc}
        if setting.key == "version":
            schema["const"] = 1
        if setting.key in ("load", "faults", "hypotheses") and schema.get("type") == "array":
            schema["minItems"] = 1
        if setting.key == "load" and schema.get("type") == "array":
            schema = {"oneOf": [schema["items"], schema], "description": setting.doc}
        if setting.least is not None:
            schema["minimum"] = setting.least
        if setting.most is not None:
            schema["maximum"] = setting.most
        if not setting.required and setting.default not in (None, "", ()):
            schema["description"] += f" (default: {default_words(setting.default)})"
        return schema

    def of_type(self, wanted: Any) -> Schema:
        """What may be written for a type."""
        inner, optional = without_none(wanted)
        schema = self._of_inner(inner)
        return {"anyOf": [schema, {"type": "null"}]} if optional else schema

    def _of_inner(self, inner: Any) -> Schema:
        if get_origin(inner) is tuple:
            return {"type": "array", "items": self.of_type(get_args(inner)[0])}
        if inner in self.entries:
            built: Schema = self.entries[inner]()
            return built
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            return self.mapping(described(inner))
        if get_origin(inner) is Literal:
            return {"enum": list(get_args(inner))}
        if inner in _PATTERNS:
            return {"type": "string", "pattern": _PATTERNS[inner], "examples": [form_of(inner).example]}
        if inner not in _PLAIN:
            raise TypeError(f"no setting can have the type {inner!r}")
        return dict(_PLAIN[inner])

    def fault(self, kind: str, cls: type[Any]) -> Schema:
        """An entry of `faults` of one kind."""
        schema = self.mapping(fault_settings(cls), title=kind, description=cls.summary)
        schema["properties"]["kind"] = {"const": kind}
        return schema

    def guard(self, cls: type[Measure]) -> Schema:
        """An entry of `guards` on one measure."""
        schema = self._measured(cls, guard_settings(cls))
        return schema | {"anyOf": [{"required": ["below"]}, {"required": ["above"]}]}

    def hypotheses(self, cls: type[Measure]) -> Iterable[Schema]:
        """Entries of `hypotheses` on one measure: on the window alone, and on its difference to a control."""
        alone = [s for s in hypothesis_settings(cls) if s.key not in CONTROL_KEYS]
        yield self._claim(cls, alone)
        for key in CONTROL_KEYS if compared_in(cls) else ():
            other = {*CONTROL_KEYS} - {key}
            schema = self._claim(cls, [s for s in hypothesis_settings(cls, compares=True) if s.key not in other])
            schema["required"].append(key)
            yield schema | {"title": f"{cls.name} {key.replace('_', ' another ')}"}

    def _claim(self, cls: type[Measure], settings: Sequence[Setting]) -> Schema:
        schema = self._measured(cls, settings)
        if cls.needs_window:
            schema["required"].append("window")
        return (
            schema if owns_bound(cls) else schema | {"anyOf": [{"required": ["at_least"]}, {"required": ["at_most"]}]}
        )

    def _measured(self, cls: type[Measure], settings: Iterable[Setting]) -> Schema:
        schema = self.mapping(settings, title=cls.name, description=cls.summary)
        schema["properties"]["measure"] = {"const": cls.name}
        if cls.name not in SHORTHANDS:
            schema["required"].append("measure")
        return schema


def _one_of(schemas: Iterable[Schema]) -> Schema:
    return {"oneOf": list(schemas)}
