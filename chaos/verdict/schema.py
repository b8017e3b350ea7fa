"""JSON Schema (draft 2020-12) of verdict.json, for the programs that read it.

It says what is there and what it means. Keys may be added without a new version, so unknown ones are allowed.
"""

from __future__ import annotations

from typing import Any

from chaos.journal.record import OUTCOMES
from chaos.verdict.document import VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def verdict_schema() -> Schema:
    """The schema."""
    return {
        "$schema": DIALECT,
        "title": "Brownout verdict",
        **_mapping(
            {
                "version": {"const": VERSION},
                "run": _text("id of the run, and the name of its directory"),
                "experiment": _text("path of the experiment below `experiments/`, without its suffix"),
                "title": _text("the experiment in one sentence"),
                "fingerprint": _text("of the plan: the same file, settings, targets and seed have the same"),
                "seed": {"type": "integer", "description": "what targets and arrivals were drawn with"},
                "profile": _text("how the parts of the stack were realised"),
                "weaknesses": _texts("mistakes that were planted in the stack on purpose"),
                "verdict": _verdict("of the run: preconditions first, then refuted over inconclusive over upheld"),
                "exit_code": {"enum": [0, 1, 2, 3, 4, 64, 70], "description": "what the command ends with"},
                "why": _text("the verdict in one sentence"),
                "preconditions": _list(_precondition(), "what must hold before any number means anything"),
                "faults": _list(_fault(), "what was done to whom, and what proves it"),
                "hypotheses": _list(_hypothesis(), "each claim with its answer"),
                "requests": _requests(),
                "notes": _texts("what a reader should know beside"),
                "windows": {
                    "type": "object",
                    "description": "where each window really lay: its stretches as [start, end]",
                    "additionalProperties": {"type": "array", "items": _pair({"type": "number"})},
                },
            },
            optional=("windows",),
        ),
    }


def _mapping(properties: Schema, optional: tuple[str, ...] = ()) -> Schema:
    return {"type": "object", "properties": properties, "required": [key for key in properties if key not in optional]}


def _text(told: str) -> Schema:
    return {"type": "string", "description": told}


def _texts(told: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": told}


def _list(items: Schema, told: str) -> Schema:
    return {"type": "array", "items": items, "description": told}


def _pair(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 2, "maxItems": 2}


def _verdict(told: str) -> Schema:
    return {"enum": ["upheld", "refuted", "inconclusive"], "description": told}


def _maybe(kind: str, told: str) -> Schema:
    return {"type": [kind, "null"], "description": told}


def _flag(told: str) -> Schema:
    return {"type": "boolean", "description": told}


def _precondition() -> Schema:
    return _mapping({"name": _text("what must hold"), "held": _flag("whether it did"), "why": _text("what was seen")})


def _fault() -> Schema:
    since = "seconds since the run began"
    return _mapping(
        {
            "name": _text("name of the fault and of its window"),
            "kind": _text("which fault; `brownout faults KIND` describes it"),
            "targets": _texts("who was harmed"),
            "fidelity": _text("which layer was really broken"),
            "injected_at": _maybe("number", f"{since}; null: never"),
            "confirmed": _flag("somebody else than the fault itself saw it, from its start to its end"),
            "observer": _text("who looked, and how"),
            "what": _text("what was seen, or why that is not enough"),
            "reverted_at": _maybe("number", f"{since}; null: never"),
            "reverted_by": _maybe("string", "timeline, a signal, a guard, the watchdog ..."),
            "gone": _flag("somebody saw that it was gone"),
            "lateness_s": _maybe("number", "injected later than planned by this many seconds"),
            "unseen_first_s": _maybe("number", "from the inject to the look that saw it first"),
            "unseen_last_s": _maybe("number", "from the last look that saw it to its revert"),
        }
    )


def _hypothesis() -> Schema:
    side = {"type": ["number", "null"]}
    return _mapping(
        {
            "name": _text("the claim in words"),
            "verdict": _verdict("upheld: the whole interval is within the bound; refuted: all of it is outside"),
            "measure": _text("what was measured; `brownout measures NAME` describes it"),
            "unit": {
                "enum": ["ratio", "duration", "factor", "count"],
                "description": "of value, interval and bound: a share from 0 to 1, seconds, a plain number, a count",
            },
            "window": _maybe("string", "where; null: over the whole run"),
            "value": _maybe("number", "what was found; null: nothing, or it never came"),
            "interval": {
                "anyOf": [_pair(side), {"type": "null"}],
                "description": "95 % sure on each side; null as an end: no limit; null: nothing was found",
            },
            "n": {"type": "integer", "minimum": 0, "description": "how many samples the answer rests on"},
            "bound": {
                "type": "object",
                "properties": {"at_least": {"type": "number"}, "at_most": {"type": "number"}},
                "description": "what was wanted",
            },
            "why": _text("the answer in one sentence: found, wanted, of what"),
            "to_settle": _maybe("string", "what would settle it, when it is inconclusive"),
            "records": _texts("what the answer rests on, in words"),
        }
    )


def _requests() -> Schema:
    counts = {name: {"type": "integer", "minimum": 0} for name in ("planned", *OUTCOMES)}
    return _mapping(counts) | {"description": "planned requests and how they ended: planned is the sum of all others"}
