"""The JSON Schema of verdict.json, held against every stored verdict and every case of the judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chaos.verdict.document import to_json, to_text
from chaos.verdict.judge import judge
from chaos.verdict.schema import verdict_schema
from tests.verdict.story import CASES, JOURNALS, experiment

SCHEMA = verdict_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted(JOURNALS.glob("*/verdict.json")), ids=lambda path: path.parent.name)
def test_every_stored_verdict_is_valid(path: Path) -> None:
    VALIDATOR.validate(json.loads(path.read_text()))


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_verdict_is_valid_and_every_key_of_it_is_described(case: str) -> None:
    """Describe a new key in chaos/verdict/schema.py."""
    document = json.loads(to_text(judge(experiment(), CASES[case].evidence())))
    VALIDATOR.validate(document)
    assert [] == list(undescribed(document, SCHEMA))


def undescribed(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Keys of a document that the schema does not know."""
    if isinstance(value, dict) and "properties" in schema:
        for key, inner in value.items():
            if key not in schema["properties"]:
                yield f"{path}{key}"
            yield from undescribed(inner, schema["properties"].get(key, {}), f"{path}{key}.")
    if isinstance(value, list) and "items" in schema:
        for inner in value:
            yield from undescribed(inner, schema["items"], path)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [("verdict", "passed"), ("exit_code", 5), ("version", 2), ("hypotheses", None), ("requests", {"planned": -1})],
)
def test_what_is_no_verdict_is_refused(key: str, wrong: object) -> None:
    document = to_json(judge(experiment(), CASES["upheld"].evidence()))
    assert not VALIDATOR.is_valid({**document, key: wrong})
    assert not VALIDATOR.is_valid({name: value for name, value in document.items() if name != key})
