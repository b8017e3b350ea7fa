"""Is an answer the JSON that was expected: these keys with these values, whatever else it says? Pure.

    {"status": "shipped", "paid_cents": "<number>", "parcels": [{"id": "<text>"}]}

An object holds at least the expected keys, a list has as many items, each as expected. `"<text>"`, `"<number>"`,
`"<boolean>"`, `"<list>"` and `"<object>"` accept any value of their kind; everything else must be equal, and true is
not 1. A model may put its JSON into a code fence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "<text>": (str,),
    "<number>": (int, float),
    "<boolean>": (bool,),
    "<list>": (list,),
    "<object>": (dict,),
}


def is_json_like(text: str, wanted: Any) -> bool:
    """Whether the whole text is JSON of this shape; never raises."""
    fenced = _FENCED.match(text)
    try:
        found = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return False
    return _fits(found, wanted)


def _fits(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and wanted in _KINDS:
        return isinstance(found, _KINDS[wanted]) and (wanted == "<boolean>" or not isinstance(found, bool))
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and _fits(found[key], each) for key, each in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_fits(one, each) for one, each in zip(found, wanted, strict=True))
        )
    return isinstance(found, bool) == isinstance(wanted, bool) and bool(found == wanted)
