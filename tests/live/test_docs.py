"""docs/grafana.md and the dashboard name what the page really serves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.live.following import Followed
from chaos.openmetrics import Family
from tests.live.told import plan, told
from tests.verdict.story import INJECT, Story

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "grafana.md").read_text()
DASHBOARD = json.loads((DOCS / "grafana-dashboard.json").read_text())


@pytest.fixture(scope="module")
def families() -> tuple[Family, ...]:
    run = Followed(plan())
    for kind, fields in told(Story(), INJECT + 3):
        run.tell(kind, fields)
    return run.families(INJECT + 3)


def test_every_family_is_documented_with_its_labels_and_meaning(families: tuple[Family, ...]) -> None:
    """Write a new one into the table of docs/grafana.md."""
    rows = [(family.name, set(family.points[0].labels), family.help) for family in families]
    documented = re.findall(r"^\| `(brownout_\w+)` \| (.*?) ?\| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [(name, set(filter(None, labels.split(", "))), told) for name, labels, told in documented]


def queries(value: Any) -> Iterator[str]:
    """Every PromQL of the dashboard."""
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key == "expr")
        for inner in value.values():
            yield from queries(inner)
    if isinstance(value, list):
        for inner in value:
            yield from queries(inner)


def test_the_dashboard_and_the_page_ask_only_for_what_there_is(families: tuple[Family, ...]) -> None:
    there = {f.name + {"counter": "_total", "histogram": "_bucket"}.get(f.kind, "") for f in families}
    asked = {name for text in (*queries(DASHBOARD), *re.findall(r"```promql\n(.*?)```", PAGE, re.DOTALL))
             for name in re.findall(r"brownout_\w+", text)}  # fmt: skip
    assert asked <= there
    assert asked


def test_the_annotations_of_the_page_and_the_dashboard_have_the_shape_that_is_served() -> None:
    run = Followed(plan())
    for kind, fields in told(Story(), 1e9):
        run.tell(kind, fields)
    served = [*run.annotations(60.0)]
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    examples = json.loads(shown)
    assert all(example in served for example in examples)
    columns = {column["selector"] for column in DASHBOARD["annotations"]["list"][0]["target"]["columns"]}
    assert columns <= set(served[0])
