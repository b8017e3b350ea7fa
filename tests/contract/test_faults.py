"""Every fault of the catalogue keeps the contract; the test of a new fault is one line here."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.faults.cache_flush import CacheFlush
from chaos.faults.cache_stampede import CacheStampede
from chaos.faults.catalog import FAULTS, by_kind
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
from chaos.inventory import Target
from chaos.settings import settings_of
from chaos.testing.clock import run_virtual
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.testing.host import InMemoryHost
from chaos.units import Duration, Rate, Ratio, Size

EDGES: tuple[Fault, ...] = (
    NetBandwidth(rate=Size(1000)),
    NetBandwidth(rate=Size(500_000), direction="upstream"),
    NetLimit(after=Size(0)),
    NetLimit(after=Size(65_536), direction="upstream"),
    NetReset(),
    NetReset(after=Duration(2), direction="upstream"),
    NetSlicer(),
    NetSlicer(piece=Size(1), pause=Duration(10), direction="upstream"),
    NetSlicer(piece=Size(1400), variation=Size(700), pause=Duration(0.005)),
    NetTimeout(),
    NetTimeout(close_after=Duration(0.1), direction="upstream"),
)
PACKETS: tuple[Fault, ...] = (
    PacketCorrupt(),
    PacketDelay(delay=Duration(0.05)),
    PacketDelay(delay=Duration(0.3), jitter=Duration(0.3), direction="upstream"),
    PacketDuplicate(share=Ratio(0.5)),
    PacketLoss(),
    PacketLoss(share=Ratio(0.2), burst=4, direction="downstream"),
    PacketRate(rate=Size(50_000)),
    PacketReorder(by=1),
)
STORES: tuple[Fault, ...] = (
    VectorStoreEmpty(),
    VectorStorePartial(),
    VectorStoreReadOnly(),
    VectorStoreSlow(),
    VectorStoreStale(),
    VectorStoreUnready(),
)
RESOURCES: tuple[Fault, ...] = (
    CpuPressure(),
    CpuPressure(share=Ratio(0.99), by="cgroup"),
    CpuPressure(share=Ratio(0.3), by="hog"),
    DiskFull(),
    FdExhaustion(),
    MemoryPressure(),
    MemoryPressure(room=Size(4 << 20), by="cgroup"),
    MemoryPressure(share=Ratio(0.1), by="hog"),
)
TOOLS: tuple[Fault, ...] = (
    ToolError(),
    ToolError(form="protocol", tool="order_status", share=Ratio(0.1)),
    ToolLostReply(),
    ToolLostReply(after_bytes=1, tool="order_status", share=Ratio(0.1)),
    ToolSessionDrop(),
    ToolSessionDrop(share=Ratio(0.1)),
    ToolSlow(delay=Duration(0.05)),
    ToolSlow(delay=Duration(60), tool="order_status", share=Ratio(0.1)),
    ToolWrongSchema(),
    ToolWrongSchema(breach="null", tool="order_status", share=Ratio(0.1)),
)
FILES: tuple[Fault, ...] = (
    IoError(),
    IoError(error="ENOSPC", operations=("write",), share=Ratio(0.5)),
    IoDelay(),
    IoDelay(operations=("write", "fsync"), delay=Duration(0.1)),
)
CLOCKS: tuple[Fault, ...] = (
    ClockSkew(),
    ClockSkew(offset=Duration(3), direction="behind"),
    ClockSkew(offset=Duration(0), drift=Ratio(0.5)),
)
KV: tuple[Fault, ...] = (
    KvReference(),
    KvReference(damage="expired"),
    KvReference(damage="stale", share=Ratio(0.5)),
    KvReference(damage="out_of_range"),
    KvTransferRefused(),
    KvTransferRefused(path="side_channel"),
    KvTransferSlow(latency=Duration(0.4)),
    KvTransferSlow(latency=Duration(0.15), direction="upstream", path="side_channel"),
    KvTransferTimeout(),
    KvTransferTimeout(path="side_channel", close_after=Duration(0.1)),
)
STRANGERS: tuple[Fault, ...] = (
    LoadBurst(),
    LoadBurst(size=500, every=Duration(0.5)),
    LoadDisconnects(rate=Rate(20)),
    LoadDisconnects(rate=Rate(20), share=Ratio(1)),
    LoadLongPrompts(rate=Rate(5)),
    LoadRetryStorm(rate=Rate(20)),
    LoadSurge(rate=Rate(100), seed=7),
)
EXAMPLES: tuple[Fault, ...] = (
    *FILES,
    *CLOCKS,
    Noop(),
    ProcessKill(),
    ProcessKill(signal="TERM"),
    ProcessStall(),
    ProcessStall(part="all"),
    ProcessStall(part="worker"),
    ProcessKill(part="core"),
    ProcessKill(part="worker"),
    ProcessExitZero(),
    NodeLoss(),
    NodeDrain(),
    ConfigDrift(model="brownout-chat-v2", max_model_len=2048),
    ConfigDrift(num_gpu_blocks=300, prefix_caching=False),
    *KV,
    KvCacheShrink(),
    KvCacheShrink(keep=Ratio(0.8)),
    NetLatency(latency=Duration(0.15)),
    NetLatency(latency=Duration(0.4), jitter=Duration(0.4), direction="upstream"),
    NetDown(),
    *EDGES,
    *PACKETS,
    HttpBody(),
    HttpBody(body="html", path="/v1/"),
    HttpBody(body="broken_json", share=Ratio(0.1), trace="0af7651916cd43dd8448eb211c80319c"),
    HttpDelay(delay=Duration(0.05)),
    HttpDelay(delay=Duration(60), share=Ratio(0.1)),
    HttpReset(),
    HttpReset(after_bytes=1, share=Ratio(0.1), path="/mcp"),
    HttpStatus(),
    HttpStatus(status=429, retry_after=Duration(2), share=Ratio(0.1), path="/v1/"),
    *RESOURCES,
    GpuLost(),
    GpuHang(),
    GpuXid(),
    GpuXid(code=79),
    GpuEcc(),
    GpuEcc(errors="corrected"),
    GpuEcc(contained=False, remap="failed"),
    GpuThrottle(),
    GpuThrottle(reason="sw_power_cap"),
    GpuThrottle(reason="hw_power_brake"),
    GpuContention(),
    GpuContention(share=Ratio(0.1)),
    GpuMigReconfigure(),
    GpuMigReconfigure(stuck=True),
    GpuMemoryPressure(),
    StreamCut(),
    StreamCut(after_events=0, ending="clean", share=Ratio(0.2)),
    StreamCut(ending="error"),
    StreamStall(),
    StreamStall(after_events=0, share=Ratio(0.2)),
    StreamDropDone(),
    StreamDropDone(share=Ratio(0.1), model="brownout-chat"),
    StreamDuplicate(),
    StreamDuplicate(after_events=0, share=Ratio(0.1)),
    StreamErrorFrame(),
    StreamErrorFrame(after_events=0, share=Ratio(0.1)),
    StreamGarble(),
    StreamGarble(after_events=0, share=Ratio(0.1)),
    StreamSlowFirst(delay=Duration(0.1)),
    StreamSlowFirst(delay=Duration(60), share=Ratio(0.1)),
    StreamTruncateToolCall(),
    StreamTruncateToolCall(keep_chars=0, share=Ratio(0.1)),
    CacheFlush(),
    CacheStampede(),
    CacheStampede(match="answer:*", share=Ratio(0.7)),
    MetricsFreeze(),
    MetricsGap(),
    MetricsGap(page="empty"),
    *STORES,
    *TOOLS,
    *STRANGERS,
)
ROLES = {
    **{type(fault): "tool" for fault in TOOLS},
    **{type(fault): "prefill" for fault in KV},
    **{type(fault): "gateway" for fault in STRANGERS},
}
WIRES = {CacheFlush: "redis", CacheStampede: "redis", **{type(fault): "postgres" for fault in STORES}}
PASSING: tuple[Fault, ...] = (
    ProcessKill(restart="supervisor"),
    ProcessRestart(),
    ProcessRestart(drain=False),
    ProcessCrashLoop(),
    ProcessCrashLoop(deaths=2),
    ProcessSlowStart(),
)
"""Whose trace stays when they are over."""
RELEASES = (
    ReleaseCanary(model="brownout-chat-v2-long"),
    ReleaseCanary(code="2", system_prompt="Be brief.", max_tokens=90, min_tokens=60),
)


CALLERS: tuple[Fault, ...] = (
    NetPartition(from_="agent"),
    NetDown(from_="agent"),
    NetLatency(latency=Duration(0.15), from_="agent"),
    NetTimeout(from_="agent"),
)
"""That harm one role of callers alone."""


ONLY_IN_STACKS = {
    "config_drift": "needs a supervisor that starts an engine with other settings: killed in tests/system",
    "release_canary": "needs a gateway with engines behind it: killed in tests/system",
}
"""Kinds that are not tried on the real machine by themselves, and why."""


def target_for(fault: Fault, world: InMemoryHost) -> Target:
    """One that it can harm."""
    if isinstance(fault, ReleaseCanary):
        return world.add_gateway()
    role, wire = ROLES.get(type(fault), "engine"), WIRES.get(type(fault), "http")
    target = world.add_target("a", role, node="gpu-node-1", processes=3, wire=wire)
    return world.add_caller("a", "agent") if fault in CALLERS else target


def _check(fault: Fault, *, targets: int, lasting: bool = True, wire: str = "http", callers: bool = False) -> None:
    async def main() -> None:
        world = InMemoryHost()
        for name in ("engine-a", "engine-b")[:targets]:
            world.add_target(name, ROLES.get(type(fault), "engine"), node="gpu-node-1", processes=3, wire=wire)
            if callers:
                world.add_caller(name, "agent")
        await check_fault(
            fault, tuple(t.record for t in world.supervisor.targets.values()), world.host, lasting=lasting
        )

    run_virtual(main)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("fault", EXAMPLES, ids=repr)
def test_a_fault_is_seen_while_it_is_there_and_reverts_from_wherever_it_was_cut_off(fault: Fault, targets: int) -> None:
    _check(fault, targets=targets, wire=WIRES.get(type(fault), "http"))


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("fault", [*CALLERS, *EDGES, HttpStatus(), StreamCut()], ids=repr)
def test_where_callers_have_edges_of_their_own_all_or_those_of_one_role_are_harmed(fault: Fault, targets: int) -> None:
    _check(fault, targets=targets, callers=True)


@pytest.mark.parametrize("wire", ["postgres", "redis"])
@pytest.mark.parametrize(
    "fault",
    [
        ProcessKill(),
        ProcessExitZero(),
        ProcessStall(),
        FdExhaustion(),
        NodeLoss(),
        NodeDrain(),
        NetLatency(latency=Duration(0.15)),
        NetDown(),
        *EDGES,
        *PACKETS,
        *FILES,
        *CLOCKS,
    ],
    ids=repr,
)
def test_processes_and_edges_of_a_database_are_harmed_like_any_other(fault: Fault, wire: str) -> None:
    _check(fault, targets=1, wire=wire)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_harm_that_the_supervisor_ends_keeps_the_contract_of_passing_harm(fault: Fault, targets: int) -> None:
    _check(fault, targets=targets, lasting=False)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("fault", RELEASES, ids=repr)
def test_a_canary_keeps_the_contract_of_harm_that_the_stack_may_end_itself(fault: Fault, targets: int) -> None:
    async def main() -> None:
        world = InMemoryHost()
        gateways = tuple(world.add_gateway(f"gateway-{number}") for number in range(targets))
        await check_fault(fault, gateways, world.host, lasting=False)

    run_virtual(main)


@pytest.mark.parametrize("fault", [*EXAMPLES, *CALLERS, *PASSING, *RELEASES], ids=repr)
def test_an_observer_confirms_nothing_that_was_not_injected(fault: Fault) -> None:
    """The negative control: the inject is left out, and the observer looks for as long as harm may take to show."""

    async def main() -> None:
        world = InMemoryHost()
        await check_negative_control(fault, (target_for(fault, world),), world.host)

    run_virtual(main)


def test_every_kind_of_the_catalogue_has_an_example_here() -> None:
    assert {fault.kind for fault in FAULTS} == {example.kind for example in (*EXAMPLES, *CALLERS, *PASSING, *RELEASES)}


def test_every_kind_of_the_catalogue_is_tried_on_the_real_machine_or_has_a_reason_why_not() -> None:
    """In tests/faults/test_real_*.py, by its class."""
    folder = Path(__file__).parents[1] / "faults"
    text = "\n".join(path.read_text() for path in [*folder.glob("test_real_*.py"), folder / "machine.py"])
    assert {kind for kind, fault in by_kind.items() if f"{fault.__name__}(" not in text} == {*ONLY_IN_STACKS}


def test_the_catalogue_finds_a_fault_by_the_word_that_names_its_file_and_class() -> None:
    for kind, fault in by_kind.items():
        assert fault.__module__ == f"chaos.faults.{kind}"
        assert fault.__name__ == "".join(word.capitalize() for word in kind.split("_"))


def test_every_setting_of_every_fault_is_described() -> None:
    for fault in FAULTS:
        assert all(setting.doc for setting in settings_of(fault))
        assert fault.summary
        assert fault.observer
        assert fault.fidelity
