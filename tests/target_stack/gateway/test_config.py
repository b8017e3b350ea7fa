"""A gateway config that makes no sense is refused with the key that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from target_stack.gateway.config import GatewayConfig

GOOD: dict[str, Any] = {
    "name": "gateway",
    "listen": "127.0.0.1:8000",
    "model": "m",
    "engines": [{"name": "engine-a", "url": "http://h:1/"}],
    "fallback": {"name": "engine-small", "url": "http://h:2", "model": "small"},
    "embedder": "http://h:3/",
    "vector_store": "h:4",
    "tools": None,
    "policies": {},
}


def test_every_part_is_read() -> None:
    config = GatewayConfig.from_config(GOOD)
    assert (config.host, config.port, config.vector_store, config.tools) == ("127.0.0.1", 8000, ("h", 4), None)
    assert (config.engines[0].url, config.engines[0].model) == ("http://h:1", "m")
    assert config.fallback is not None
    assert config.fallback.model == "small"
    assert "support team" in config.canned_text


def test_the_canned_text_can_be_set() -> None:
    assert GatewayConfig.from_config({**GOOD, "canned_text": "Call 123."}).canned_text == "Call 123."


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"engine": []}, "unknown key 'engine'"),
        ({"listen": "8000"}, "'8000' is not host:port"),
        ({"engines": []}, "engines needs at least one entry"),
        ({"engines": [{"name": "a", "url": "x"}] * 2}, "a name of its own"),
        ({"policies": {"tries": 1}}, "unknown key 'tries'"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        GatewayConfig.from_config({**GOOD, **change})
