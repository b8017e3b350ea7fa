"""Every code is explained, and every example is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from chaos.spec.explain import CODES, EXPLANATIONS, explain
from chaos.spec.model import Experiment
from chaos.spec.parse import parse
from chaos.spec.scalars import form_of
from chaos.units import Duration, Rate, Ratio, Size

SPEC = Path(__file__).parents[2] / "chaos" / "spec"


def test_every_code_that_is_written_down_is_explained():
    written = {
        code
        for path in SPEC.glob("*.py")
        if path.name != "explain.py"
        for code in re.findall(
            r'(?:Diagnostic|Misfit|Form|problem|refuse|_refuse|refuse_at)\(\s*(?:[^"()]*, )?"([a-z0-9-]+)"',
            path.read_text(),
        )
    }
    assert len(written) > 40
    assert written <= set(CODES)


def test_the_codes_of_types_are_explained():
    assert {form_of(t).code for t in (str, bool, int, float, Duration, Rate, Ratio, Size)} <= set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_an_example_is_accepted(code, toy):
    """The example's keys replace those of a good file, which stays good."""
    file = yaml.safe_load(toy.GOOD)
    file["hypotheses"] = [h for h in file["hypotheses"] if "slow" not in str(h.get("window"))]
    whole = file | yaml.safe_load(EXPLANATIONS[code].example)
    found = parse(yaml.safe_dump(whole, sort_keys=False, allow_unicode=True), "x.yaml", toy.CATALOG)
    assert isinstance(found, Experiment), [d.headline for d in found]


def test_an_explanation_is_a_page_and_an_unknown_code_has_none():
    assert explain("no-traffic").startswith("no-traffic\n\nWithout requests")
    assert explain("no-such-code") is None
