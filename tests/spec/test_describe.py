"""Settings in the words in which people write them."""

from __future__ import annotations

from chaos.spec.describe import describe_settings
from chaos.spec.model import Client, Load


def test_a_fault_is_described_by_its_own_fields(toy):
    rows = [(r.key, r.type, r.default) for r in describe_settings(toy.NetLatency)]
    assert rows == [
        ("latency", "duration, such as 30s", None),
        ("jitter", "duration, such as 30s", "0s"),
        ("direction", "upstream | downstream", "downstream"),
        ("share", "percentage, such as 99%", "100%"),
    ]


def test_nested_parts_lists_and_bounds_have_words(toy):
    rows = {r.key: r for r in (*describe_settings(Load), *describe_settings(Client), *describe_settings(toy.StreamCut))}
    assert rows["client"].type == "{persona, timeout, retries, backoff}"
    assert rows["client"].default == "{persona: patient}"
    assert (rows["stream"].type, rows["stream"].default) == ("true | false", "true")
    assert (rows["retries"].bounds, rows["retries"].default) == ("0 to 10", "none")
    assert rows["times"].type == "list of whole number, such as 3"
    assert (rows["after"].required, rows["after"].type) == (True, "size, such as 64KiB")
    assert rows["name"].type == "text"
