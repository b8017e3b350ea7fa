"""The settings of a class as a person writes them: what `brownout faults NAME` prints, taken from the fields
themselves.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from chaos.settings import Setting
from chaos.spec.layout import described
from chaos.spec.scalars import form_of, without_none


@dataclass(frozen=True)
class SettingText:
    """One setting in words. `default` is None for a required one; `bounds` is empty when there are none."""

    key: str
    type: str
    required: bool
    default: str | None
    doc: str
    bounds: str


def describe_settings(cls: type) -> list[SettingText]:
    """Every setting of a fault, measure or part of the file, in order of definition."""
    return [
        SettingText(
            key=s.key,
            type=type_words(s.type),
            required=s.required,
            default=None if s.required else default_words(s.default),
            doc=s.doc,
            bounds=bounds_words(s),
        )
        for s in described(cls)
    ]


def type_words(wanted: Any) -> str:
    """`duration, such as 30s`; `KILL | TERM`; `list of text`."""
    inner, _ = without_none(wanted)
    if get_origin(inner) is tuple:
        return f"list of {type_words(get_args(inner)[0])}"
    if dataclasses.is_dataclass(inner) and isinstance(inner, type):
        return "{" + ", ".join(s.key for s in described(inner)) + "}"
    if get_origin(inner) is Literal:
        return " | ".join(str(choice) for choice in get_args(inner))
    if inner is bool:
        return "true | false"
    form = form_of(inner)
    words = form.words.removeprefix("a ")
    return words if inner is str else f"{words}, such as {form.example}"


def default_words(value: Any) -> str:
    """A default as it would be written; `none` when leaving it out means that there is none."""
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(default_words(item) for item in value)}]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = [(s.key, getattr(value, s.field)) for s in described(type(value))]
        return "{" + ", ".join(f"{key}: {default_words(item)}" for key, item in given if item is not None) + "}"
    return str(value)


def bounds_words(setting: Setting) -> str:
    """`0 to 10`, `at least 1`, `at most 3`, or nothing."""
    least, most = setting.least, setting.most
    if least is not None and most is not None:
        return f"{least:g} to {most:g}"
    if least is not None:
        return f"at least {least:g}"
    return f"at most {most:g}" if most is not None else ""
