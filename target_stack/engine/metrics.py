"""vLLM's metrics by vLLM's names, types, labels and buckets.

Two rules make a frozen engine visible, as in the original: gauges are written only when the core reports a step, and
everything about a request is counted when its tokens arrive. Nothing here asks the core, so a scrape never waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from target_stack.engine.config import EngineConfig
from target_stack.engine.kv_metrics import KvTransferMetrics
from target_stack.engine.prometheus import Family, Histogram, Number

_FIRST_TOKEN_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
_GAP_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_REQUEST_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_STEP_TOKENS = (1, 8, *(2**power for power in range(4, 15)))
_CHOICES = (1, 2, 5, 10, 20)
_PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)

FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
_TIERS = ("device", "host", "p2p", "disk", "external_unspecified")


def token_bounds(most: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, 50, ... up to `most`."""
    steps = (digit * 10**power for power in range(len(str(most))) for digit in (1, 2, 5))
    return tuple(step for step in steps if step <= most)


class Metrics:
    """The engine's instruments. Attributes are what the token path touches; `families` is what a scrape shows."""

    def __init__(self, config: EngineConfig) -> None:
        """All series exist from the start, at 0."""
        self.families: list[Family[Any]] = []
        self._labels = {"model_name": config.model, "engine": "0"}
        self._created = time.time()
        self._gauges()
        self._cache_counters()
        self._token_counters()
        self._request_counters(config)
        self._sizes(config)
        self._times()
        self._cache_config(config)
        self._kv = KvTransferMetrics(self._labels, self._created) if config.kv_transfer else None
        self.families += self._kv.families if self._kv else ()

    def step(self, report: Mapping[str, Any]) -> None:
        """Take the state that the core reports with every step (see target_stack.engine.core)."""
        self.running.value = report["running"]
        deferred = report.get("deferred", 0)
        self.waiting_capacity.value, self.waiting_deferred.value = report["waiting"], deferred
        self.waiting.value = report["waiting"] + deferred
        self.kv_usage.value = report["kv"]
        self.prefix_queries.value = report["queries"]
        self.prefix_hits.value = report["hits"]
        self.cached_tokens.value = self.cached_by_tier["device"].value = report["hits"]
        self.preemptions.value = report["preemptions"]
        if report["tokens"]:
            self.step_tokens.observe(report["tokens"])
        if self._kv is not None:
            self._kv.step(report["kv_transfer"])

    def loaded(self, config: EngineConfig, num_gpu_blocks: int) -> None:
        """The core has found room for so many KV blocks."""
        self._cache_info.children.clear()
        self._cache_info.add(cache_config_labels(config, num_gpu_blocks), Number()).value = 1.0

    def prefilled(self, prompt_tokens: int, cached: int, external: int = 0) -> None:
        """A request's first token is out, so its prompt is computed: here, before, or by a peer (`external`)."""
        self.prompt_tokens.value += prompt_tokens
        self.prompt_by_source["local_compute"].value += prompt_tokens - cached - external
        self.prompt_by_source["external_kv_transfer"].value += external
        self.prompt_by_source["local_cache_hit"].value += cached

    def load_report(self, wanted: str) -> dict[str, str]:
        """The ORCA header of a reply, TEXT or JSON; none for any other format."""
        named = {"num_requests_waiting": float(self.waiting.value), "kv_cache_usage_perc": float(self.kv_usage.value)}
        match wanted.lower():
            case "text":
                told = ", ".join(f"named_metrics.{name}={value}" for name, value in named.items())
            case "json":
                told = json.dumps({"named_metrics": named})
            case _:
                return {}
        return {"endpoint-load-metrics": f"{wanted.upper()} {told}"}

    def _gauges(self) -> None:
        for name in (
            "estimated_flops_per_gpu_total",
            "estimated_read_bytes_per_gpu_total",
            "estimated_write_bytes_per_gpu_total",
        ):
            self._counter(name, "Estimate for hardware utilisation; the simulation has no hardware.")
        self.running = self._gauge("num_requests_running", "Requests in the running batch.")
        self.waiting = self._gauge("num_requests_waiting", "Requests in the queue.")
        reasons = self._family(
            "num_requests_waiting_by_reason", "gauge", "Requests in the queue by what they wait for."
        )
        self.waiting_capacity = reasons.add({**self._labels, "reason": "capacity"}, Number())
        self.waiting_deferred = reasons.add({**self._labels, "reason": "deferred"}, Number())
        sleep = self._family("engine_sleep_state", "gauge", "1 for the state of sleep that the engine is in.")
        sleep.add({**self._labels, "sleep_state": "awake"}, Number()).value = 1.0
        for state in ("weights_offloaded", "discard_all"):
            sleep.add({**self._labels, "sleep_state": state}, Number())
        self.kv_usage = self._gauge("kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1.")

    def _cache_counters(self) -> None:
        self.prefix_queries = self._counter(
            "prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache."
        )
        self.prefix_hits = self._counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.")
        for store in ("external_prefix_cache", "mm_cache"):
            for what in ("queries", "hits"):
                self._counter(
                    f"{store}_{what}_total", f"{what.capitalize()} of a cache that the simulation does not use."
                )
        self.preemptions = self._counter(
            "num_preemptions_total", "Requests that lost their blocks and were queued again."
        )

    def _token_counters(self) -> None:
        self.prompt_tokens = self._counter("prompt_tokens_total", "Prompt tokens processed.")
        sources = ("local_compute", "local_cache_hit", "external_kv_transfer")
        self.prompt_by_source = self._split(
            "prompt_tokens_by_source_total", "Prompt tokens by origin.", "source", sources
        )
        self.cached_tokens = self._counter("prompt_tokens_cached_total", "Prompt tokens that came from a cache.")
        self.cached_by_tier = self._split(
            "prompt_tokens_cached_by_source_total", "Cached prompt tokens by tier.", "source", _TIERS
        )
        self.generation_tokens = self._counter("generation_tokens_total", "Tokens generated.")

    def _request_counters(self, config: EngineConfig) -> None:
        self.finished = self._split(
            "request_success_total", "Requests by how they ended.", "finished_reason", FINISH_REASONS
        )
        family = self._family("admission_rejections_total", "counter", "Requests refused at a queue limit.")
        reasons = ("max_num_queued_reqs", "max_num_queued_tokens")
        model = {"model_name": config.model}  # counted in the front end, so without the engine label
        self.rejected = {reason: family.add({**model, "reason": reason}, Number()) for reason in reasons}

    def _sizes(self, config: EngineConfig) -> None:
        tokens = token_bounds(config.max_model_len)
        self.request_prompt_tokens = self._histogram("request_prompt_tokens", tokens, "Prompt tokens per request.")
        self.request_generation_tokens = self._histogram(
            "request_generation_tokens", tokens, "Tokens generated per request."
        )
        self.step_tokens = self._histogram("iteration_tokens_total", _STEP_TOKENS, "Tokens per engine step.")
        self.request_max_generation = self._histogram(
            "request_max_num_generation_tokens", tokens, "Longest choice per request."
        )
        self.request_n = self._histogram("request_params_n", _CHOICES, "The n of requests.")
        self.request_max_tokens = self._histogram("request_params_max_tokens", tokens, "The max_tokens of requests.")

    def _times(self) -> None:
        self.first_token_s = self._histogram("time_to_first_token_seconds", _FIRST_TOKEN_S, "Arrival to first token.")
        self.gap_s = self._histogram("inter_token_latency_seconds", _GAP_S, "Time between two tokens.")
        self.per_token_s = self._histogram(
            "request_time_per_output_token_seconds", _GAP_S, "Mean time per token of a request."
        )
        self.e2e_s = self._histogram("e2e_request_latency_seconds", _REQUEST_S, "Arrival to last token.")
        self.queued_s = self._histogram("request_queue_time_seconds", _REQUEST_S, "Time in the queue.")
        self.inference_s = self._histogram(
            "request_inference_time_seconds", _REQUEST_S, "First scheduled to last token."
        )
        self.prefill_s = self._histogram("request_prefill_time_seconds", _REQUEST_S, "First scheduled to first token.")
        self.decode_s = self._histogram("request_decode_time_seconds", _REQUEST_S, "First to last token.")
        self.request_preemptions = self._histogram("request_num_preemptions", _PREEMPTIONS, "Preemptions per request.")

    def _cache_config(self, config: EngineConfig) -> None:
        tokens = token_bounds(config.max_model_len)
        name = "request_prefill_kv_computed_tokens"
        self.prefill_computed = self._histogram(
            name, tokens, "Prompt tokens computed per request, without cached ones."
        )
        self._cache_info = self._family("cache_config_info", "gauge", "Settings of the KV cache, as labels.")
        self.loaded(config, config.num_gpu_blocks)

    def _family(self, name: str, kind: str, text: str) -> Family[Any]:
        created = None if kind == "gauge" else self._created
        family: Family[Any] = Family(f"vllm:{name}", kind, text, created)
        self.families.append(family)
        return family

    def _gauge(self, name: str, text: str) -> Number:
        self._family(name, "gauge", text).add(self._labels, number := Number())
        return number

    def _counter(self, name: str, text: str) -> Number:
        self._family(name, "counter", text).add(self._labels, number := Number())
        return number

    def _split(self, name: str, text: str, label: str, values: Sequence[str]) -> dict[str, Number]:
        family = self._family(name, "counter", text)
        return {value: family.add({**self._labels, label: value}, Number()) for value in values}

    def _histogram(self, name: str, bounds: Sequence[float], text: str) -> Histogram:
        self._family(name, "histogram", text).add(self._labels, histogram := Histogram(bounds))
        return histogram


_CACHE_DEFAULTS: Mapping[str, str] = {
    "_block_size_resolved": "True",
    "cache_dtype": "auto",
    "cache_hit_alignment_tokens": "None",
    "enable_mamba_shared_prefix_checkpoint": "False",
    "gpu_memory_utilization": "0.92",
    "hash_block_size": "None",
    "is_attention_free": "False",
    "kv_cache_dtype_skip_layers": "[]",
    "kv_cache_layout": "None",
    "kv_cache_memory_bytes": "None",
    "kv_offloading_backend": "native",
    "kv_offloading_size": "None",
    "kv_sharing_fast_prefill": "False",
    "mamba_block_size": "None",
    "mamba_cache_dtype": "auto",
    "mamba_cache_mode": "none",
    "mamba_page_size_padded": "None",
    "mamba_ssm_cache_dtype": "float32",
    "num_cpu_blocks": "None",
    "prefix_cache_retention_interval": "0",
    "prefix_caching_hash_algo": "blake2b",
    "prefix_match_unit": "None",
    "replayssm_buffer_len": "16",
    "skip_page_size_padded": "None",
    "sliding_window": "None",
    "swa_bounded_replay": "True",
    "use_kda_recoverssm": "False",
    "use_replayssm": "False",
    "user_specified_block_size": "False",
}


def cache_config_labels(config: EngineConfig, num_gpu_blocks: int) -> dict[str, str]:
    """Every label of vLLM's info series; those without a meaning here stand at their default."""
    tokens = num_gpu_blocks * config.block_size
    return {
        **_CACHE_DEFAULTS,
        "engine": "0",
        "block_size": str(config.block_size),
        "effective_attention_block_size": str(config.block_size),
        "enable_prefix_caching": str(config.enable_prefix_caching),
        "kv_cache_max_concurrency": str(tokens / config.max_model_len),
        "kv_cache_size_tokens": str(tokens),
        "num_gpu_blocks": str(num_gpu_blocks),
        "num_gpu_blocks_override": str(config.num_gpu_blocks),
    }
