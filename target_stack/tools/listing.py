"""Does a result have the shape that its tool promises? The tools say so themselves (`tools/list`, `outputSchema`).

They are asked when the first result comes, and again when one does not fit: they may have been released anew. What
this reader of JSON Schema (2020-12) does not know it lets pass, so it never refuses what is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

Ask = Callable[[float], Awaitable[Sequence[Mapping[str, Any]]]]

_AGAIN_S = 1.0  # between two listings that misfits ask for
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Listing:
    """What the tools say of themselves. `ask` gives the tools within so many seconds, and raises as a call does."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._schemas: Mapping[str, Any] | None = None
        self._asked_at = 0.0
        self._asking = asyncio.Lock()

    async def misfit(self, tool: str, value: Any, within_s: float) -> str | None:
        """Why this is no result of the tool, None when it is one. Raises as `ask` does."""
        if self._schemas is None:
            await self._refresh(within_s)
        found = self._misfit(tool, value)
        if found and asyncio.get_running_loop().time() - self._asked_at >= _AGAIN_S:
            await self._refresh(within_s)
            found = self._misfit(tool, value)
        return found

    def _misfit(self, tool: str, value: Any) -> str | None:
        schema = (self._schemas or {}).get(tool)
        return misfit(value, schema, schema) if isinstance(schema, Mapping) else None

    async def _refresh(self, within_s: float) -> None:
        """Ask, unless somebody else has done so while we waited."""
        loop, wanted = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        async with self._asking:
            if self._schemas is None or self._asked_at < wanted:
                tools = await self._ask(max(0.001, within_s - (loop.time() - wanted)))
                self._schemas = {str(tool.get("name")): tool.get("outputSchema") for tool in tools}
                self._asked_at = loop.time()


def misfit(value: Any, schema: Any, root: Mapping[str, Any], at: str = "result") -> str | None:
    """The first place where a value breaks a schema, in words. `root` holds what `$ref` points at."""
    if not isinstance(schema, Mapping):
        return f"{at} is not allowed" if schema is False else None
    if "$ref" in schema:
        return misfit(value, _pointed(str(schema["$ref"]), root), root, at)
    return (
        _wrong_value(value, schema, at)
        or _wrong_choice(value, schema, root, at)
        or _wrong_part(value, schema, root, at)
    )


def _pointed(reference: str, root: Any) -> Any:
    """What `#/$defs/Name` points at; True, which takes all, for any other place."""
    for step in reference.removeprefix("#/").split("/"):
        root = root.get(step, True) if isinstance(root, Mapping) else True
    return root


def _wrong_value(value: Any, schema: Mapping[str, Any], at: str) -> str | None:
    kinds = schema.get("type", [])
    names = [kinds] if isinstance(kinds, str) else kinds
    if names and not any(_is(value, name) for name in names):
        return f"{at} is no {' or '.join(names)}"
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        return f"{at} is none of the values that it may have"
    return None


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):  # which Python takes for a number
        return name == "boolean"
    return name not in _TYPES or isinstance(value, _TYPES[name])


def _wrong_choice(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> str | None:
    for each in schema.get("allOf", ()):
        if found := misfit(value, each, root, at):
            return found
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices and all(misfit(value, each, root, at) for each in choices):
        return f"{at} fits none of its shapes"
    return None


def _wrong_part(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> str | None:
    if isinstance(value, list):
        found = (misfit(each, schema.get("items", True), root, f"{at}[{number}]") for number, each in enumerate(value))
        return next(filter(None, found), None)
    if not isinstance(value, Mapping):
        return None
    lacking = [name for name in schema.get("required", ()) if name not in value]
    if lacking:
        return f"{at}.{lacking[0]} is missing"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    found = (misfit(each, known.get(name, others), root, f"{at}.{name}") for name, each in value.items())
    return next(filter(None, found), None)
