"""Nodes to values: every type, every refusal, and nothing said twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from chaos.settings import setting
from chaos.spec.catalog import Catalog
from chaos.spec.parse import parse
from chaos.units import Duration, Rate, Ratio


def test_a_good_file_becomes_frozen_values(read, toy):
    experiment = read()
    assert (
        experiment.name,
        experiment.version,
        experiment.owner,
        experiment.runbook,
    ) == ("retrieval/outage", 1, "search-sre", "vector-store-outage")
    assert experiment.tags == ("retrieval", "quarterly", "ci")
    assert tuple(load.rate for load in experiment.loads) == (20.0, 1.5)
    assert (experiment.loads[1].stream, experiment.loads[1].max_tokens) == (False, 24)
    assert experiment.faults[0].fault == toy.ProcessKill()
    assert experiment.faults[1].fault == toy.NetLatency(Duration(0.3), Duration(0.02), share=Ratio(0.995))
    assert experiment.hypotheses[2].measure == toy.Event("breaker_opened", Duration(3), "outage.start", "vector-store")
    assert experiment.hypotheses[7].measure == toy.Metric('gateway_breaker_state{dependency="vector-store"}')


def test_bounds_are_written_in_the_unit_of_the_measure(read):
    hypotheses = read().hypotheses
    assert (0.99, Ratio) == (hypotheses[0].at_least, type(hypotheses[0].at_least))
    assert (1.5, Duration) == (hypotheses[1].at_most, type(hypotheses[1].at_most))
    assert (1.1, float) == (hypotheses[4].at_most, type(hypotheses[4].at_most))
    assert (0, int) == (hypotheses[6].at_most, type(hypotheses[6].at_most))
    assert read().guards[0].below == 0.5


def test_a_shorthand_means_the_same_as_the_long_form(read):
    assert read().hypotheses == read(("event: breaker_opened", "measure: event, event: breaker_opened")).hypotheses


def test_one_load_may_stand_without_a_list(read):
    start = read().text.index("load:")
    block = read().text[start : read().text.index("windows:")]
    one = read((block, "load: {name: chat, route: rag, prompts: product-questions, rate: 20/s}\n"))
    assert [Rate(20)] == [load.rate for load in one.loads]
    assert one.lines["load"] == one.lines["load.0"] == one.lines["load.0.rate"]


def test_every_data_path_has_its_line(read):
    lines, text = read().lines, read().text.split("\n")
    assert "latency: 300ms" in text[lines["faults.1.latency"] - 1]
    assert "node: any" in text[lines["faults.1.target.node"] - 1]
    assert "name: nothing left" in text[lines["hypotheses.6"] - 1]


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("not-a-duration", "for: 5s", "for: 5"),
        ("not-a-duration", "for: 5s", "for: [5s]"),
        ("not-a-rate", "rate: 20/s", "rate: 20"),
        ("not-a-percentage", "at_least: 99%", "at_least: 0.99"),
        ("not-a-whole-number", "retries: 0", 'retries: "0"'),
        ("not-a-whole-number", "retries: 0", "retries: 1_0"),
        ("not-a-number", "at_most: 1.1", "at_most: 1e1"),
        ("not-a-duration", "at_most: 1.5s", "at_most: 99%"),
        ("not-true-or-false", "stream: false", "stream: off"),
        ("not-text", "owner: search-sre", "owner: 7"),
        ("not-text", "owner: search-sre", "owner: true"),
        ("empty-value", "owner: search-sre", "owner: null"),
        ("empty-value", "owner: search-sre", "owner: '  '"),
        ("empty-value", "windows: {baseline: 15s, recovery: 20s, settled: 15s}", "windows:"),
        ("not-a-list", "tags: [retrieval, quarterly, ci]", "tags: ci"),
        ("not-a-mapping", "slo:\n      ttft: 2s", "slo: fast"),
        ("unknown-choice", "quantile: p99", "quantile: 99"),
        ("out-of-range", "count: 1", "count: 0"),
        ("out-of-range", "rate: 20/s", f"rate: {'9' * 400}/s"),
        ("unknown-version", "version: 1", "version: 7"),
        ("unknown-fault", "kind: net_latency", "kind: 7s"),
        ("not-text", "kind: net_latency", "kind: 7"),
        ("missing-key", "    kind: net_latency\n", ""),
        ("missing-key", "measure: requests_running, ", ""),
        ("missing-key", "    latency: 300ms\n", ""),
        ("unknown-key", "kind: net_latency", "knid: net_latency"),
        ("unknown-key", "owner:", "onwer:"),
        ("unknown-key", "jitter:", "jiter:"),
        ("unknown-key", "measure: ttft", "measrue: ttft"),
        ("foreign-bound", "within: 3s", "within: 3s, at_most: 3s"),
        ("invalid-setting", "metric: gateway_breaker_state", "metric: '!'#"),
    ],
)
def test_a_wrong_value_is_told_once_and_alone(codes, code, old, new):
    assert [code] == codes((old, new))


def test_a_missing_optional_is_as_good_as_null(read):
    assert (
        read().faults[0].target == read(("{role: vector-store}", "{role: vector-store, count: null}")).faults[0].target
    )


def test_an_unknown_kind_hides_the_other_errors_of_its_entry(codes):
    assert codes(("kind: net_latency", "kind: net_lag"), ("jitter: 20ms", "jiter: 20"), ("at: 5s", "at: 5")) == [
        "unknown-fault"
    ]


def test_all_problems_come_at_once_in_the_order_of_the_file(codes):
    found = codes(
        ("why:", "wy:"), ("rate: 20/s", "rate: 20"), ("for: 15s", "for: 60s"), ("window: settled", "window: settle")
    )
    assert found == ["unknown-key", "not-a-rate", "fault-exceeds-blast-radius", "unknown-window"]


def test_a_key_that_belongs_elsewhere_is_sent_there(read):
    (problem,) = read(("rate: 20/s", "rate: 20/s\n    timeout: 8s"))
    assert problem.help == "`timeout` belongs under `client`"


def test_a_share_written_as_a_number_is_shown_in_percent(read):
    (problem,) = read(("at_least: 99%", "at_least: 0.99"))
    assert problem.help == "write `99%`"


def test_a_file_that_is_no_mapping_says_so(toy):
    for text in ("- a\n- b\n", "hello\n", "[]"):
        assert [d.code for d in parse(text, "x", toy.CATALOG)] == ["not-a-mapping"]


def test_a_setting_of_a_type_nobody_can_write_is_a_mistake_in_the_catalog(toy):
    @dataclass(frozen=True)
    class Odd(toy.Noop):
        kind: ClassVar[str] = "odd"
        when: complex = setting("never", default=0j)

    text = toy.GOOD.replace("kind: process_kill", "kind: odd\n    when: 1")
    with pytest.raises(TypeError, match="complex"):
        parse(text, "x", Catalog(faults=(Odd,), measures=toy.MEASURES))
