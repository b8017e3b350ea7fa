"""A judged run for OpenTelemetry: OTLP/JSON, one document of metrics and one of spans, as a collector takes them.

    metrics   every name of `chaos.report.measured` (`brownout_run_verdict` is `brownout.run.verdict` here), and what
              the requests felt under the names of the semantic conventions (`gen_ai.client...`)
    trace     run ─► windows ─► faults as spans; what the stack told, what was seen, what was judged as span events

The encoding is written here rather than with the SDK: that one tells of a process that is alive, with its own clock and
ids, and its JSON is base64 where OTLP's is hexadecimal. The tests decode every document with the official messages.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from chaos.report.facts import Facts
from chaos.report.measured import unix_time

Json = dict[str, Any]
Value = str | bool | int | float | Sequence[str]


def attributes(pairs: Mapping[str, Value | None]) -> list[Json]:
    """Key-value pairs; what is missing (None, NaN) is left out."""
    known = {key: value for key, value in pairs.items() if value is not None and value == value}  # noqa: PLR0124  NaN
    return [{"key": key, "value": _value(value)} for key, value in known.items()]


def _value(value: Value) -> Json:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": double(value)}
    return {"arrayValue": {"values": [_value(each) for each in value]}}


def double(value: float) -> float | str:
    """JSON has no infinity; the JSON of protocol buffers has a word for it."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def nanos(facts: Facts, t: float | None) -> str:
    """A moment of the run in Unix nanoseconds; 0, which is OTLP's unknown, where the journal does not tell."""
    at = unix_time(facts, t)
    return "0" if at is None else str(round(at * 1e6) * 1000)


def hexadecimal(length: int, *parts: str) -> str:
    """An id that is the same at every export of the same run, so that a collector can tell it is no other."""
    return hashlib.sha256("\0".join(("brownout", *parts)).encode()).hexdigest()[:length]


def resource(facts: Facts) -> Json:
    """Who tells: the harness, in this run."""
    verdict = facts.verdict
    return {
        "attributes": attributes(
            {
                "service.name": "brownout",
                "service.version": metadata.version("brownout"),
                "service.instance.id": verdict.run,
                "brownout.experiment": verdict.experiment,
                "brownout.run": verdict.run,
                "brownout.profile": verdict.profile,
                "brownout.seed": verdict.seed,
                "brownout.fingerprint": verdict.fingerprint,
                "brownout.weaknesses": list(verdict.weaknesses) or None,
            }
        )
    }


def to_lines(*documents: Json) -> str:
    """One document a line: the file form that collectors read and write."""
    return "".join(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n" for document in documents)


def scope() -> Json:
    """Which part of the harness tells."""
    return {"name": "chaos.report", "version": metadata.version("brownout")}
