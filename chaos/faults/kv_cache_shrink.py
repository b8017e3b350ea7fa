"""One engine has fewer KV blocks than its peers: less memory was left for them when it started.

A real vLLM counts its blocks once, at its start, so the honest way to fewer of them is a restart
(`--num-gpu-blocks-override`). An engine refuses to start with fewer blocks than one context takes, so the context
shrinks with them, as with vLLM's `--max-model-len auto`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips.other_settings import OtherSettings, Told
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class KvCacheShrink(OtherSettings):
    """Restarts an engine with a share of its KV blocks."""

    kind: ClassVar[str] = "kv_cache_shrink"
    summary: ClassVar[str] = "One engine is restarted with a share of its KV blocks: it preempts what its peers carry."
    observer: ClassVar[str] = (
        "the engine's own `vllm:cache_config_info` tells fewer blocks, /v1/models the context that fits into them"
    )

    keep: Ratio = setting("share of the engine's KV blocks that it keeps", default=Ratio(0.25))

    def changes(self, told: Told) -> Mapping[str, Any]:
        """Fewer blocks, at least one, and no longer a context than they hold."""
        blocks = max(1, int(told["num_gpu_blocks"] * self.keep))
        return {"num_gpu_blocks": blocks, "max_model_len": min(told["max_model_len"], blocks * told["block_size"])}
