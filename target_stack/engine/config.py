"""The settings of one engine, checked once at the door so that nothing behind it has to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from target_stack.engine.adapters import BASE, Adapter
from target_stack.engine.cost import Cost
from target_stack.engine.kv_transfer import KvTransfer

VERSION = "0.32.0"  # the vLLM release whose surface is reproduced
_AT_LEAST_ONE = (
    "max_num_seqs", "max_num_batched_tokens", "max_model_len", "num_gpu_blocks", "block_size", "stream_interval",
)  # fmt: skip


@dataclass(frozen=True)
class EngineConfig:
    """What `main` is given. Times in seconds, sizes in tokens or KV blocks; None means without bound.

    `shutdown_timeout` is how long SIGTERM waits for open requests (0 aborts them). `slow_factor` stretches every step.
    `adapters` are further model ids. `device` is the register file of its GPU. `kv_transfer` is the KV connector of an
    engine that only computes prompts, or only goes on from where another engine has computed one.
    Names that vLLM has as arguments mean what they mean there.
    """

    name: str
    listen: str
    model: str = "brownout-7b"
    adapters: Mapping[str, Adapter] = field(default_factory=dict)
    seed: int = 0
    cost: Cost = field(default_factory=Cost)
    max_num_seqs: int = 16
    max_num_batched_tokens: int = 2048
    max_model_len: int = 4096
    num_gpu_blocks: int = 512
    block_size: int = 16
    enable_prefix_caching: bool = True
    prefix_hash: str = "content"
    scheduling_policy: str = "fcfs"
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None
    stream_interval: int = 1
    sse_keep_alive_interval: float = 0.0
    enable_force_include_usage: bool = False
    enable_request_id_headers: bool = False
    enable_server_load_tracking: bool = False
    api_key: str | None = None
    shutdown_timeout: float = 0.0
    slow_factor: float = 1.0
    startup_delay_s: float = 0.0
    http_keep_alive_s: float = 5.0
    keep_alive_on_engine_death: bool = False
    device: str | None = None
    weights_bytes: int = 2 << 30
    kv_block_bytes: int = 40 << 20
    execute_model_timeout_s: float = 300.0
    kv_transfer: KvTransfer | None = None

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read the component's configuration. Raises ValueError that names the key."""
        known = {each.name for each in dataclasses.fields(cls)}
        if unknown := sorted(set(record) - known):
            raise ValueError(f"engine config: unknown key {unknown[0]!r}")
        if missing := sorted({"name", "listen"} - set(record)):
            raise ValueError(f"engine config: {missing[0]!r} is missing")
        adapters = {name: Adapter.from_json(name, habits) for name, habits in record.get("adapters", {}).items()}
        kv = record.get("kv_transfer")
        parts = {"cost": Cost.from_json(record.get("cost", {})), "adapters": adapters}
        config = cls(**{**record, **parts, "kv_transfer": KvTransfer.from_json(kv) if kv else None})
        config._check()
        return config

    def _check(self) -> None:
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"engine config: {name} must be at least 1")
        if self.scheduling_policy not in {"fcfs", "priority"}:
            raise ValueError("engine config: scheduling_policy is fcfs or priority")
        if self.prefix_hash not in {"content", "position_only"}:
            raise ValueError("engine config: prefix_hash is content or position_only")
        if self.model in self.adapters:
            raise ValueError(f"engine config: adapters: {self.model!r} is the base model")
        if self.num_gpu_blocks * self.block_size < self.max_model_len:
            # As vLLM does: a request that fills the context could otherwise never be served.
            raise ValueError("engine config: num_gpu_blocks * block_size must hold max_model_len tokens")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of `listen`."""
        host, _, port = self.listen.rpartition(":")
        return host, int(port)

    def habits(self, model: str) -> Adapter:
        """The adapter of a model id that is served."""
        return self.adapters.get(model, BASE)
