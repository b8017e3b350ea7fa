"""One description of a setting, read by everyone: the decoder, the JSON Schema, and the catalog a person prints.

A fault, probe, measure or part of the experiment file is a frozen dataclass whose fields are made with `setting(...)`.
The field's type says what text is accepted, its default says whether it must be given, its doc says what it does.
Nothing else describes it a second time.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

_REQUIRED: Any = dataclasses.MISSING


@dataclasses.dataclass(frozen=True)
class Setting:
    """A described field. `key` is its name in YAML (a field `for_` is the key `for`)."""

    key: str
    field: str
    type: Any
    doc: str
    required: bool
    default: Any
    least: float | None
    most: float | None


def setting(
    doc: str, *, default: Any = _REQUIRED, key: str | None = None, least: float | None = None, most: float | None = None
) -> Any:
    """Make a dataclass field with its doc; `least` and `most` bound a number (inclusive)."""
    metadata = {"doc": doc, "key": key, "least": least, "most": most}
    return dataclasses.field(default=default, metadata=metadata)


def settings_of(cls: type) -> Iterator[Setting]:
    """Every described field of a dataclass in order of definition, with resolved types."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if "doc" not in field.metadata:
            continue
        required = field.default is dataclasses.MISSING
        yield Setting(
            key=field.metadata["key"] or field.name.rstrip("_"),
            field=field.name,
            type=hints[field.name],
            doc=field.metadata["doc"],
            required=required,
            default=None if required else field.default,
            least=field.metadata["least"],
            most=field.metadata["most"],
        )
