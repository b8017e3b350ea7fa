"""One written value to one typed value, or the reason why not.

The type of the setting decides how a value is read; nothing is converted that was not written that way. `30` is never a
duration, `"5"` never a number, `true` never a text: each has its own code, and a help line that shows what to write.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from chaos.spec.source import Scalar
from chaos.spec.wording import shown, suggestion
from chaos.units import Duration, Rate, Ratio, Size, UnitError

LARGEST = 1e15
"""No quantity of an experiment is larger; beyond it arithmetic would stop being exact."""

_Quantity = type[Duration] | type[Rate] | type[Ratio] | type[Size]
_QUANTITIES: tuple[_Quantity, ...] = (Duration, Rate, Ratio, Size)
_KIND_WORD = {"null": "nothing", "boolean": "true or false", "whole": "a number", "decimal": "a number", "text": "text"}


@dataclass(frozen=True)
class Misfit:
    """Why a value was refused."""

    code: str
    headline: str
    help: str | None = None


@dataclass(frozen=True)
class Form:
    """How a type is spoken of: its code when something else stands there, its words, and one valid example."""

    code: str
    words: str
    example: str


def form_of(wanted: Any) -> Form:
    """The form of a scalar type. Raises TypeError for a type that no setting may have."""
    if get_origin(wanted) is Literal:
        choices = [str(choice) for choice in get_args(wanted)]
        return Form("unknown-choice", " or ".join(choices), choices[0])
    if wanted in _QUANTITIES:
        return Form(f"not-a-{wanted.wanted}", f"a {wanted.wanted}", wanted.example)
    if wanted not in _FORMS:
        raise TypeError(f"no setting can have the type {wanted!r}")
    return _FORMS[wanted]


def without_none(wanted: Any) -> tuple[Any, bool]:
    """`T | None` as (T, True), anything else as (itself, False)."""
    if get_origin(wanted) not in (types.UnionType, typing.Union):
        return wanted, False
    members = [member for member in get_args(wanted) if member is not types.NoneType]
    if len(members) != 1:
        raise TypeError(f"no setting can have the type {wanted!r}")
    return members[0], True


def read_scalar(node: Scalar, wanted: Any) -> Any:
    """The value, or a Misfit. Raises TypeError for a type that no setting may have."""
    form = form_of(wanted)
    if get_origin(wanted) is Literal:
        return _choice(node, get_args(wanted))
    if wanted in _QUANTITIES:
        return _quantity(node, wanted, form)
    return _READERS[wanted](node, form)


def _choice(node: Scalar, choices: tuple[Any, ...]) -> Any:
    by_text = {str(choice): choice for choice in choices}
    if node.text in by_text:
        return by_text[node.text]
    return Misfit("unknown-choice", f"{shown(node.text)} is not one of the choices", suggestion(node.text, by_text))


def _quantity(node: Scalar, wanted: _Quantity, form: Form) -> Any:
    try:
        value = wanted.parse(node.text)
    except UnitError as error:
        return Misfit(form.code, f"{shown(node.text)} is not {form.words}", _unit_help(node, wanted, error.example))
    except OverflowError:
        return _too_large(node)
    return value if math.isfinite(value) and value <= LARGEST else _too_large(node)


def _unit_help(node: Scalar, wanted: _Quantity, example: str) -> str:
    """What was probably meant, when the unit alone is missing; else any valid example."""
    if wanted is Ratio and node.kind == "decimal" and 0 <= float(node.text) <= 1:
        return f"write `{Ratio(node.text)}`"
    guessed = example.startswith(node.text) and len(example) <= 12
    return f"write `{example}`" if guessed else f"write for example `{wanted.example}`"


def _too_large(node: Scalar) -> Misfit:
    return Misfit("out-of-range", f"{shown(node.text)} is too large")


def _text(node: Scalar, form: Form) -> Any:
    if node.kind == "text":
        return node.text
    return Misfit(form.code, f"{shown(node.text)} is {_KIND_WORD[node.kind]}, not text", f'write `"{node.text}"`')


def _boolean(node: Scalar, form: Form) -> Any:
    if node.kind == "boolean":
        return node.text == "true"
    meant = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
    lower = node.text.lower()
    example = meant.get(lower, lower if lower in ("true", "false") else None)
    help_text = f"write `{example}`" if example else "write `true` or `false`"
    return Misfit(form.code, f"{shown(node.text)} is not {form.words}", help_text)


def _whole(node: Scalar, form: Form) -> Any:
    if node.kind == "whole":
        return int(node.text)
    return Misfit(
        form.code, f"{shown(node.text)} is not {form.words}", f"write a plain number, such as `{form.example}`"
    )


def _decimal(node: Scalar, form: Form) -> Any:
    if node.kind in ("whole", "decimal"):
        return float(node.text)
    return Misfit(
        form.code, f"{shown(node.text)} is not {form.words}", f"write a plain number, such as `{form.example}`"
    )


_FORMS: Mapping[Any, Form] = {
    str: Form("not-text", "text", "some words"),
    bool: Form("not-true-or-false", "true or false", "true"),
    int: Form("not-a-whole-number", "a whole number", "3"),
    float: Form("not-a-number", "a number", "1.5"),
}
_READERS: Mapping[Any, Callable[[Scalar, Form], Any]] = {str: _text, bool: _boolean, int: _whole, float: _decimal}
