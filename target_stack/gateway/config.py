"""The gateway's configuration: where its dependencies are, and the policies.

    {"listen": "127.0.0.1:8000", "model": "brownout-chat",
     "engines": [{"name": "engine-a", "url": "http://127.0.0.1:9001"}, ...],
     "fallback": {"name": "engine-small", "url": "...", "model": "brownout-small"} or null,
     "embedder": "http://...", "vector_store": "host:port", "tools": "http://...", "cache": "host:port",
     "agents": "http://...", "policies": {...}}

With `prefill` engines, listed like `engines`, prompts are computed there and `engines` go on from them.
`model` is the one name that clients may ask for. An engine or the fallback may serve it under a `model` name of its
own. `embedder`, `vector_store`, `tools` and `agents` may be null: their routes then say so; without a `cache` no answer
is kept. `canned_text` is what users read when no model answers. `release` is the first stable release, by default the
public model without any configuration. In `data_dir` the gateway keeps the releases in force, so that they outlive it;
`admin` is the Unix socket for operators, `events_file` where the structured log goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from target_stack.gateway.policies.release import Release
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.prompts import FIRST_CODE

CANNED_TEXT = (
    "Our assistant cannot answer at the moment. "
    "Please contact our support team: a person will take care of your question."
)
_UPSTREAMS = ("engines", "prefill", "fallback", "embedder", "vector_store", "cache", "tools", "agents")
_PLACES = ("data_dir", "admin", "events_file")
_OWN = ("name", "listen", "model", "canned_text", "tools_token", "seed", "policies", "release", *_PLACES)
_KEYS = frozenset({*_OWN, *_UPSTREAMS})


@dataclass(frozen=True)
class Upstream:
    """An engine: its name in the inventory, its base URL, and the name of its model."""

    name: str
    url: str
    model: str

    @classmethod
    def from_config(cls, record: Mapping[str, Any], model: str) -> Self:
        """`model` is the name when the record has none of its own. Raises KeyError without name or url."""
        return cls(name=record["name"], url=record["url"].rstrip("/"), model=record.get("model") or model)


@dataclass(frozen=True)
class GatewayConfig:
    """All of it, checked."""

    host: str
    port: int
    model: str
    canned_text: str
    engines: tuple[Upstream, ...]
    prefill: tuple[Upstream, ...]
    fallback: Upstream | None
    embedder: str | None
    vector_store: tuple[str, int] | None
    cache: tuple[str, int] | None
    tools: str | None
    tools_token: str
    agents: str | None
    seed: int | None
    policies: PolicySettings
    release: Release
    data_dir: Path | None
    admin: Path | None
    events_file: Path | None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Read the component's config. Raises ValueError or KeyError naming what is wrong."""
        unknown = sorted(set(config) - _KEYS)
        if unknown:
            raise ValueError(f"gateway config: unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
        (host, port), model = _address(config["listen"]), str(config["model"])
        engines = tuple(Upstream.from_config(record, model) for record in config["engines"])
        if len({engine.name for engine in engines}) != len(engines) or not engines:
            raise ValueError("gateway config: engines needs at least one entry, each with a name of its own")
        fallback, store, cache = config.get("fallback"), config.get("vector_store"), config.get("cache")
        return cls(
            host=host,
            port=port,
            model=model,
            canned_text=str(config.get("canned_text", CANNED_TEXT)),
            engines=engines,
            prefill=tuple(Upstream.from_config(record, model) for record in config.get("prefill", ())),
            fallback=Upstream.from_config(fallback, model) if fallback else None,
            embedder=_base_url(config.get("embedder")),
            vector_store=_address(store) if store else None,
            cache=_address(cache) if cache else None,
            tools=_base_url(config.get("tools")),
            tools_token=str(config.get("tools_token", "")),
            agents=_base_url(config.get("agents")),
            seed=config.get("seed"),
            policies=PolicySettings.from_config(config.get("policies", {})),
            release=Release.from_json({"name": "first", **config.get("release", {})}, like=_unchanged(model)),
            data_dir=Path(config["data_dir"]) if config.get("data_dir") else None,
            admin=Path(config["admin"]) if config.get("admin") else None,
            events_file=Path(config["events_file"]) if config.get("events_file") else None,
        )


def _unchanged(model: str) -> Release:
    return Release("first", FIRST_CODE, model)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"gateway config: {text!r} is not host:port")
    return host, int(port)


def _base_url(text: str | None) -> str | None:
    return text.rstrip("/") if text else None
