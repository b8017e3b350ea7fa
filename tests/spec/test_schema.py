"""The JSON Schema says of a file what the decoder says, as far as a schema can."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from chaos.spec.schema import DIALECT, json_schema


def problems(schema, value, at="$"):
    """The few keywords we use, checked: enough to hold our own schema against our own files."""
    if "oneOf" in schema:
        passing = [s for s in schema["oneOf"] if not problems(s, value, at)]
        return [] if len(passing) == 1 else [f"{at}: {len(passing)} of oneOf"]
    found = (
        [] if "anyOf" not in schema or any(not problems(s, value, at) for s in schema["anyOf"]) else [f"{at}: anyOf"]
    )
    types = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
        "null": type(None),
    }
    kind = schema.get("type")
    if kind and (not isinstance(value, types[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [*found, f"{at}: no {kind}"]
    found += [f"{at}: const"] if "const" in schema and value != schema["const"] else []
    found += [f"{at}: enum"] if "enum" in schema and value not in schema["enum"] else []
    found += [f"{at}: pattern"] if "pattern" in schema and not re.search(schema["pattern"], value) else []
    found += [f"{at}: small"] if "minimum" in schema and value is not None and value < schema["minimum"] else []
    found += [f"{at}: few"] if len(value if isinstance(value, list) else "x") < schema.get("minItems", 0) else []
    if isinstance(value, dict):
        found += [f"{at}: misses {key}" for key in schema.get("required", ()) if key not in value]
        known = schema.get("properties", {})
        if schema.get("additionalProperties") is False:
            found += [f"{at}: unknown {key}" for key in value if key not in known]
        found += [p for key, child in value.items() if key in known for p in problems(known[key], child, f"{at}.{key}")]
    if isinstance(value, list):
        found += [p for i, child in enumerate(value) for p in problems(schema.get("items", {}), child, f"{at}[{i}]")]
    return found


@pytest.fixture(scope="module")
def schema(toy):
    return json.loads(json.dumps(json_schema(toy.CATALOG)))


def test_it_names_its_dialect_and_every_kind(schema, toy):
    assert schema["$schema"] == DIALECT
    kinds = [branch["properties"]["kind"]["const"] for branch in schema["properties"]["faults"]["items"]["oneOf"]]
    assert [cls.kind for cls in toy.FAULTS] == kinds


def test_a_good_file_is_valid(schema, toy):
    assert problems(schema, yaml.safe_load(toy.GOOD)) == []


def test_one_load_may_stand_without_a_list(schema, toy):
    file = yaml.safe_load(toy.GOOD)
    assert problems(schema, file | {"load": file["load"][0]}) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1", "version: 2"),
        ("owner: search-sre", "owner: 5"),
        ("owner:", "onwer:"),
        ("rate: 20/s", "rate: 20"),
        ("for: 15s", "for: 15"),
        ("kind: net_latency", "kind: net_lag"),
        ("jitter: 20ms", "restart: on_revert"),
        ("count: 1", "count: 0"),
        ("at_least: 99%", "at_least: 0.99"),
        (", at_most: 1.1", ""),
        ("within: 3s", "within: 3s, at_most: 3s"),
        ("window: settled, measure", "measure"),
        ("measure: success_ratio, load: chat, below", "measure: recovery_time, of: ttft, below"),
    ],
)
def test_what_the_schema_refuses_the_decoder_refuses_too(schema, toy, codes, old, new):
    assert problems(schema, yaml.safe_load(toy.GOOD.replace(old, new, 1))) != []
    assert codes((old, new)) != []


def test_every_setting_carries_its_doc(schema):
    def docs(node):
        for key, child in node.get("properties", {}).items():
            yield key, "const" in child or bool(child.get("description"))
            yield from docs(child)
        for branch in (*node.get("oneOf", ()), node.get("items", {})):
            if branch:
                yield from docs(branch)

    assert all(described for _, described in docs(schema))
