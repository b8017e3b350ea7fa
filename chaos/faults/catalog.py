"""Every kind of fault. A new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.faults.cache_flush import CacheFlush
from chaos.faults.cache_stampede import CacheStampede
from chaos.faults.clock_skew import ClockSkew
from chaos.faults.config_drift import ConfigDrift
from chaos.faults.cpu_pressure import CpuPressure
from chaos.faults.disk_full import DiskFull
from chaos.faults.fault import Fault
from chaos.faults.fd_exhaustion import FdExhaustion
from chaos.faults.gpu_contention import GpuContention
from chaos.faults.gpu_ecc import GpuEcc
from chaos.faults.gpu_hang import GpuHang
from chaos.faults.gpu_lost import GpuLost
from chaos.faults.gpu_memory_pressure import GpuMemoryPressure
from chaos.faults.gpu_mig_reconfigure import GpuMigReconfigure
from chaos.faults.gpu_throttle import GpuThrottle
from chaos.faults.gpu_xid import GpuXid
from chaos.faults.http_body import HttpBody
from chaos.faults.http_delay import HttpDelay
from chaos.faults.http_reset import HttpReset
from chaos.faults.http_status import HttpStatus
from chaos.faults.io_delay import IoDelay
from chaos.faults.io_error import IoError
from chaos.faults.kv_cache_shrink import KvCacheShrink
from chaos.faults.kv_reference import KvReference
from chaos.faults.kv_transfer_refused import KvTransferRefused
from chaos.faults.kv_transfer_slow import KvTransferSlow
from chaos.faults.kv_transfer_timeout import KvTransferTimeout
from chaos.faults.load_burst import LoadBurst
from chaos.faults.load_disconnects import LoadDisconnects
from chaos.faults.load_long_prompts import LoadLongPrompts
from chaos.faults.load_retry_storm import LoadRetryStorm
from chaos.faults.load_surge import LoadSurge
from chaos.faults.memory_pressure import MemoryPressure
from chaos.faults.metrics_freeze import MetricsFreeze
from chaos.faults.metrics_gap import MetricsGap
from chaos.faults.net_bandwidth import NetBandwidth
from chaos.faults.net_down import NetDown
from chaos.faults.net_latency import NetLatency
from chaos.faults.net_limit import NetLimit
from chaos.faults.net_partition import NetPartition
from chaos.faults.net_reset import NetReset
from chaos.faults.net_slicer import NetSlicer
from chaos.faults.net_timeout import NetTimeout
from chaos.faults.node_drain import NodeDrain
from chaos.faults.node_loss import NodeLoss
from chaos.faults.noop import Noop
from chaos.faults.packet_corrupt import PacketCorrupt
from chaos.faults.packet_delay import PacketDelay
from chaos.faults.packet_duplicate import PacketDuplicate
from chaos.faults.packet_loss import PacketLoss
from chaos.faults.packet_rate import PacketRate
from chaos.faults.packet_reorder import PacketReorder
from chaos.faults.process_crash_loop import ProcessCrashLoop
from chaos.faults.process_exit_zero import ProcessExitZero
from chaos.faults.process_kill import ProcessKill
from chaos.faults.process_restart import ProcessRestart
from chaos.faults.process_slow_start import ProcessSlowStart
from chaos.faults.process_stall import ProcessStall
from chaos.faults.release_canary import ReleaseCanary
from chaos.faults.stream_cut import StreamCut
from chaos.faults.stream_drop_done import StreamDropDone
from chaos.faults.stream_duplicate import StreamDuplicate
from chaos.faults.stream_error_frame import StreamErrorFrame
from chaos.faults.stream_garble import StreamGarble
from chaos.faults.stream_slow_first import StreamSlowFirst
from chaos.faults.stream_stall import StreamStall
from chaos.faults.stream_truncate_tool_call import StreamTruncateToolCall
from chaos.faults.tool_error import ToolError
from chaos.faults.tool_lost_reply import ToolLostReply
from chaos.faults.tool_session_drop import ToolSessionDrop
from chaos.faults.tool_slow import ToolSlow
from chaos.faults.tool_wrong_schema import ToolWrongSchema
from chaos.faults.vector_store_empty import VectorStoreEmpty
from chaos.faults.vector_store_partial import VectorStorePartial
from chaos.faults.vector_store_read_only import VectorStoreReadOnly
from chaos.faults.vector_store_slow import VectorStoreSlow
from chaos.faults.vector_store_stale import VectorStoreStale
from chaos.faults.vector_store_unready import VectorStoreUnready

FAULTS: tuple[type[Fault], ...] = (
    CacheFlush,
    CacheStampede,
    ClockSkew,
    ConfigDrift,
    CpuPressure,
    DiskFull,
    FdExhaustion,
    GpuContention,
    GpuEcc,
    GpuHang,
    GpuLost,
    GpuMemoryPressure,
    GpuMigReconfigure,
    GpuThrottle,
    GpuXid,
    HttpBody,
    HttpDelay,
    HttpReset,
    HttpStatus,
    IoDelay,
    IoError,
    KvCacheShrink,
    KvReference,
    KvTransferRefused,
    KvTransferSlow,
    KvTransferTimeout,
    LoadBurst,
    LoadDisconnects,
    LoadLongPrompts,
    LoadRetryStorm,
    LoadSurge,
    MemoryPressure,
    MetricsFreeze,
    MetricsGap,
    NetBandwidth,
    NetDown,
    NetLatency,
    NetLimit,
    NetPartition,
    NetReset,
    NetSlicer,
    NetTimeout,
    NodeDrain,
    NodeLoss,
    Noop,
    PacketCorrupt,
    PacketDelay,
    PacketDuplicate,
    PacketLoss,
    PacketRate,
    PacketReorder,
    ProcessCrashLoop,
    ProcessExitZero,
    ProcessKill,
    ProcessRestart,
    ProcessSlowStart,
    ProcessStall,
    ReleaseCanary,
    StreamCut,
    StreamDropDone,
    StreamDuplicate,
    StreamErrorFrame,
    StreamGarble,
    StreamSlowFirst,
    StreamStall,
    StreamTruncateToolCall,
    ToolError,
    ToolLostReply,
    ToolSessionDrop,
    ToolSlow,
    ToolWrongSchema,
    VectorStoreEmpty,
    VectorStorePartial,
    VectorStoreReadOnly,
    VectorStoreSlow,
    VectorStoreStale,
    VectorStoreUnready,
)

by_kind: Mapping[str, type[Fault]] = MappingProxyType({fault.kind: fault for fault in FAULTS})
