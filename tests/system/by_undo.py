"""The faults in whose middle the harness is killed, by what their undo is; each has a short experiment of its name.

`make test` kills it in the first of each family, since all of a family are undone by the same call; `make soak` in all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain

from chaos.adapters.machine import has
from chaos.faults.grips.needs import TRACE
from chaos.faults.grips.packets import PacketFault

BY_UNDO: Mapping[str, tuple[str, ...]] = {
    "a marker file": ("noop_long",),
    "a hold on a dead process": ("process_kill",),
    "a hold on all of a node": ("node_loss",),
    "a stopped process": ("process_stall",),
    "a burden on a process": (
        *("config_drift", "process_crash_loop", "process_restart", "process_exit_zero", "process_slow_start"),
        *("node_drain", "kv_cache_shrink"),
    ),
    "a listener that is off": ("net_down",),
    "a toxic on bytes": (
        "net_latency",
        "net_bandwidth",
        "net_limit",
        "net_reset",
        "net_slicer",
        "net_timeout",
        "net_partition",
    ),
    "a toxic on requests": (
        *("http_status", "http_body", "http_delay", "http_reset"),
        *("tool_error", "tool_slow", "tool_wrong_schema", "tool_lost_reply", "tool_session_drop"),
    ),
    "a toxic on streams": (
        *("stream_stall", "stream_cut", "stream_drop_done", "stream_duplicate", "stream_error_frame"),
        *("stream_garble", "stream_slow_first"),
    ),
    "a page that is served in another's place": ("metrics_freeze", "metrics_gap"),
    "a condition of a GPU": (
        *("gpu_throttle", "gpu_contention", "gpu_memory_pressure", "gpu_ecc", "gpu_xid", "gpu_hang", "gpu_lost"),
        "gpu_mig_reconfigure",
    ),
    "a limit of a process": ("fd_exhaustion",),
    "a group that processes are moved into": ("cpu_pressure", "memory_pressure"),
    "a saboteur": ("disk_full",),
    "a rule for packets": (
        *("packet_loss", "packet_corrupt", "packet_delay", "packet_duplicate", "packet_rate", "packet_reorder"),
    ),
    "a crowd of strangers": ("load_surge", "load_burst", "load_long_prompts", "load_retry_storm", "load_disconnects"),
    "two names of a table": (
        *("vector_store_empty", "vector_store_partial", "vector_store_slow", "vector_store_stale"),
        "vector_store_unready",
    ),
    "a setting of a database": ("vector_store_read_only",),
    "entries in another database of a cache": ("cache_flush", "cache_stampede"),
    "a release of a gateway": ("release_canary",),
    "a tracer of processes": ("io_error", "io_delay"),
    "a changed page of a process's memory": ("clock_skew",),
}
DISAGGREGATED: Mapping[str, tuple[str, ...]] = {
    "a listener that is off": ("kv_transfer_refused",),
    "a toxic on bytes": ("kv_transfer_slow", "kv_transfer_timeout"),
    "a toxic on requests": ("kv_reference",),
}
"""Those that need the profile embedded-pd: of the soak alone, with that stack up."""
EXCUSED: Mapping[str, str] = {
    "stream_truncate_tool_call": "the bundled engines make no tool calls; its undo is that of the other stream faults",
}
"""Kinds that cannot be injected on the bundled stack, and why."""
ONLY_ROOT = ("disk_full",)
ONLY_WHERE_TRACING_IS_FREE = ("io_error", "io_delay", "clock_skew")
ONLY_WITH_PACKET_QUEUES = BY_UNDO["a rule for packets"]
_NOT_HERE = (
    *(() if os.geteuid() == 0 else ONLY_ROOT),
    *(() if has(TRACE) else ONLY_WHERE_TRACING_IS_FREE),
    *(() if all(map(has, PacketFault.needs)) else ONLY_WITH_PACKET_QUEUES),
)
ALL = tuple(name for name in chain.from_iterable(BY_UNDO.values()) if name not in _NOT_HERE)
FIRST = tuple(faults[0] for faults in BY_UNDO.values() if faults[0] in ALL)
