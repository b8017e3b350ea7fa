"""The hash chain: a journal line proves that nothing before it was changed, dropped or moved.

    {"n":7,"t":12.25,"kind":"gate",...,"prev":"<hash of line 6>","hash":"<SHA-256 of this line up to here>"}

The hash is taken over the bytes of the line as they stand, not over their meaning, so that any flipped byte shows.
`prev` of the first line is 64 zeros.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from chaos.journal.record import Record

GENESIS = "0" * 64

_RESERVED = ("n", "t", "kind", "prev", "hash")
_SUFFIX = len(',"hash":""}') + 64


def _finite(value: Any) -> Any:
    """JSON has no nan or infinity: they become null."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def canonical(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, ASCII, no nan; what is not JSON is its `str`."""
    return json.dumps(_finite(value), sort_keys=True, separators=(",", ":"), default=str)


def _outside(name: str) -> str:
    """A field that has the name of a column of the chain is written with an underscore more."""
    return name + "_" if name.rstrip("_") in _RESERVED else name


def _inside(name: str) -> str:
    return name[:-1] if name.endswith("_") and name.rstrip("_") in _RESERVED else name


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def encode(record: Record, prev: str) -> tuple[bytes, str]:
    """The line of a record (with its newline) and the hash that the next line takes as `prev`."""
    head = f'{{"n":{record.n},"t":{canonical(round(record.t, 6))},"kind":{json.dumps(record.kind)}'
    fields = canonical({_outside(name): value for name, value in record.fields.items()})[1:-1]
    body = f'{head}{"," if fields else ""}{fields},"prev":"{prev}"'.encode()
    found = _digest(body)
    return body + f',"hash":"{found}"}}\n'.encode(), found


def decode(line: bytes, prev: str) -> tuple[Record, str]:
    """The record of a line (without its newline) that must follow `prev`, and its hash. Raises ValueError saying what
    is wrong.
    """
    body, tail = line[:-_SUFFIX], line[-_SUFFIX:]
    found = _digest(body)
    if tail != f',"hash":"{found}"}}'.encode():
        raise ValueError("its hash is not the hash of its bytes")
    if not body.endswith(f',"prev":"{prev}"'.encode()):
        raise ValueError("it does not follow the line before it")
    try:
        fields = json.loads(line)
        record = Record(n=fields["n"], t=fields["t"], kind=fields["kind"], fields=_free(fields))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"it is not a journal record: {error}") from error
    return record, found


def _free(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {_inside(name): value for name, value in fields.items() if name not in _RESERVED}
