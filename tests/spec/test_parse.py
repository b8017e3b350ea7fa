"""The front door: names, byte input, and that nothing a file holds can make it raise."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.spec.catalog import Catalog
from chaos.spec.model import Experiment
from chaos.spec.parse import name_of, parse


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("engine/stall", "experiments/engine/stall.yaml"),
        ("engine/stall", "/srv/experiments/engine/stall.yml"),
        ("control/no_fault", "old/experiments/new/experiments/control/no_fault.yaml"),
        ("mine", "somewhere/mine.yaml"),
        ("experiments", "experiments"),
    ],
)
def test_an_experiment_is_called_by_its_path_below_experiments(name, label):
    assert name == name_of(label)


def test_a_given_name_wins(toy):
    assert parse(toy.GOOD, "x.yaml", toy.CATALOG, name="mine").name == "mine"


def test_bytes_and_text_mean_the_same(toy):
    assert parse(toy.GOOD, "x.yaml", toy.CATALOG) == parse(b"\xef\xbb\xbf" + toy.GOOD.encode(), "x.yaml", toy.CATALOG)


def test_windows_line_ends_change_nothing(toy):
    crlf = parse(toy.GOOD.replace("\n", "\r\n"), "x.yaml", toy.CATALOG)
    assert parse(toy.GOOD, "x.yaml", toy.CATALOG).lines == crlf.lines


def test_prompts_and_runbooks_are_checked_only_when_the_catalog_knows_them(toy):
    text = toy.GOOD.replace("product-questions", "nowhere").replace("runbook: vector-store-outage", "runbook: nowhere")
    assert isinstance(parse(text, "x", Catalog(toy.FAULTS, toy.MEASURES)), Experiment)
    assert [d.code for d in parse(text, "x", toy.CATALOG)] == ["runbook-not-found", "unknown-prompts"]


def test_a_damaged_file_is_an_experiment_or_problems(mutations, toy):
    tally = mutations.survive(toy.GOOD, toy.CATALOG, count=200, seed=20)
    assert tally["good"] > 0
    assert len(tally) > 10


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.binary(max_size=80), at=st.integers(min_value=0, max_value=2_000))
def test_any_bytes_anywhere_are_survived(toy, data, at):
    raw = toy.GOOD.encode()
    found = parse(raw[:at] + data + raw[at:], "x.yaml", toy.CATALOG)
    assert isinstance(found, Experiment) or found


@settings(max_examples=60, deadline=None, derandomize=True)
@given(start=st.sampled_from(["", "faults.", "faults.0.for=", "load."]), rest=st.text(max_size=30))
def test_any_option_is_survived(toy, start, rest):
    found = parse(toy.GOOD, "x.yaml", toy.CATALOG, overrides=[start + rest])
    assert isinstance(found, Experiment) or found
