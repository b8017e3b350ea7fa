"""What cannot be harmed is refused while planning or preparing, in a sentence that names target, find and remedy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from chaos.faults.config_drift import ConfigDrift
from chaos.faults.fault import CannotInject, Fault
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
from chaos.faults.load_burst import LoadBurst
from chaos.faults.load_disconnects import LoadDisconnects
from chaos.faults.load_long_prompts import LoadLongPrompts
from chaos.faults.load_retry_storm import LoadRetryStorm
from chaos.faults.load_surge import LoadSurge
from chaos.faults.metrics_freeze import MetricsFreeze
from chaos.faults.metrics_gap import MetricsGap
from chaos.faults.net_bandwidth import NetBandwidth
from chaos.faults.net_down import NetDown
from chaos.faults.net_latency import NetLatency
from chaos.faults.net_limit import NetLimit
from chaos.faults.net_reset import NetReset
from chaos.faults.net_slicer import NetSlicer
from chaos.faults.net_timeout import NetTimeout
from chaos.faults.node_drain import NodeDrain
from chaos.faults.node_loss import NodeLoss
from chaos.faults.noop import Noop
from chaos.faults.process_crash_loop import ProcessCrashLoop
from chaos.faults.process_exit_zero import ProcessExitZero
from chaos.faults.process_kill import ProcessKill
from chaos.faults.process_restart import ProcessRestart
from chaos.faults.process_slow_start import ProcessSlowStart
from chaos.faults.process_stall import ProcessStall
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
from chaos.inventory import Target
from chaos.ports import HttpReply
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.units import Duration, Rate, Size

BARE = Target("tools", "tool", None, (), "127.0.0.1:41001")
LATENCY = NetLatency(latency=Duration(0.1))
STREAMS: tuple[Fault, ...] = (
    *(StreamCut(), StreamDropDone(), StreamDuplicate(), StreamErrorFrame(), StreamGarble()),
    *(StreamSlowFirst(delay=Duration(0.1)), StreamStall(), StreamTruncateToolCall()),
)
REQUESTS: tuple[Fault, ...] = (
    *(HttpBody(), HttpDelay(delay=Duration(0.1)), HttpReset(), HttpStatus(), MetricsFreeze(), MetricsGap()),
)
EDGES: tuple[Fault, ...] = (
    *(NetBandwidth(rate=Size(1000)), NetLimit(after=Size(1000)), NetReset(), NetSlicer(), NetTimeout()),
)
GPU: tuple[Fault, ...] = (
    *(GpuContention(), GpuEcc(), GpuHang(), GpuLost(), GpuMemoryPressure(), GpuMigReconfigure(), GpuThrottle()),
    GpuXid(),
)
TOOLS: tuple[Fault, ...] = (
    *(ToolError(), ToolLostReply(), ToolSessionDrop(), ToolSlow(delay=Duration(0.1)), ToolWrongSchema()),
)
STRANGERS: tuple[Fault, ...] = (
    *(LoadBurst(), LoadDisconnects(rate=Rate(10)), LoadLongPrompts(rate=Rate(10))),
    *(LoadRetryStorm(rate=Rate(10)), LoadSurge(rate=Rate(10))),
)
TOXIC: tuple[Fault, ...] = (*EDGES, *REQUESTS, *STREAMS, *TOOLS)
DRIFT = ConfigDrift(max_model_len=2048)
LIVES: tuple[Fault, ...] = (ProcessCrashLoop(), ProcessExitZero(), ProcessRestart(), ProcessSlowStart(), NodeDrain())
HARMFUL: tuple[Fault, ...] = (
    *LIVES,
    DRIFT,
    ProcessKill(),
    ProcessStall(),
    NodeLoss(),
    LATENCY,
    NetDown(),
    *TOXIC,
    *GPU,
)


@pytest.mark.parametrize("fault", HARMFUL, ids=lambda fault: fault.kind)
def test_a_target_without_the_needed_handles_is_named(fault: Fault) -> None:
    found = fault.problems((BARE,))
    assert found
    assert all(sentence.startswith("tools: ") for sentence in found)


def test_the_control_needs_no_target_at_all() -> None:
    assert Noop().problems(()) == ()


def test_a_kill_that_is_not_held_needs_no_supervisor() -> None:
    target = dataclasses.replace(BARE, pids=(1,))
    assert ProcessKill(restart="supervisor").problems((target,)) == ()
    assert "use `restart: supervisor`" in ProcessKill().problems((target,))[0]


@pytest.mark.parametrize("fault", STREAMS, ids=lambda fault: fault.kind)
def test_only_what_serves_streams_can_have_them_harmed(fault: Fault) -> None:
    async def main() -> tuple[str, ...]:
        return fault.problems((InMemoryHost().add_target("tools", "tool"),))

    engines = "engine or prefill or decode or fallback-engine"
    wanted = f"tools: a tool serves no token streams; choose a target of role {engines}"
    assert run_virtual(main) == (wanted,)


@pytest.mark.parametrize("fault", STRANGERS, ids=lambda fault: fault.kind)
def test_strangers_come_to_front_doors_that_count_their_requests(fault: Fault) -> None:
    async def main() -> tuple[str, ...]:
        return fault.problems((InMemoryHost().add_target("engine-a", "engine"),))

    wanted = "engine-a: its role is engine, so it counts no requests of users; choose a target of role gateway"
    assert run_virtual(main) == (wanted,)


@pytest.mark.parametrize("fault", STRANGERS, ids=lambda fault: fault.kind)
def test_a_front_door_that_does_not_answer_is_named(fault: Fault) -> None:
    assert "tools does not count its requests at 127.0.0.1:41001/metrics; " in _refusal(fault, _die)


@pytest.mark.parametrize("fault", TOOLS, ids=lambda fault: fault.kind)
def test_only_what_serves_tools_can_have_their_calls_harmed(fault: Fault) -> None:
    async def main() -> tuple[str, ...]:
        return fault.problems((InMemoryHost().add_target("engine-a", "engine"),))

    assert run_virtual(main) == (
        "engine-a: its role is engine, so it serves no tools over MCP; choose a target of role tool",
    )


@pytest.mark.parametrize("fault", TOOLS, ids=lambda fault: fault.kind)
def test_calls_of_a_tool_that_is_not_there_cannot_be_harmed(fault: Fault) -> None:
    refused = _refusal(dataclasses.replace(fault, tool="order_stats"), lambda _: None)
    assert refused == "tools has no tool 'order_stats'; did you mean 'order_status'?"


@pytest.mark.parametrize("fault", REQUESTS, ids=lambda fault: fault.kind)
def test_harm_to_requests_needs_http(fault: Fault) -> None:
    async def main() -> tuple[str, ...]:
        return fault.problems((InMemoryHost().add_target("vectors", "vector-store", wire="postgres"),))

    assert run_virtual(main) == ("vectors: it speaks postgres, not HTTP",)


@pytest.mark.parametrize("fault", [MetricsFreeze(), MetricsGap()], ids=lambda fault: fault.kind)
def test_what_has_no_metrics_page_cannot_lose_it(fault: Fault) -> None:
    async def main() -> tuple[str, ...]:
        return fault.problems((InMemoryHost().add_target("vectors", "vector-store", wire="postgres"),))

    assert run_virtual(main) == ("vectors: it speaks postgres, not HTTP",)


def test_an_engine_that_does_not_say_what_it_serves_is_named() -> None:
    def hide(world: InMemoryHost) -> None:
        world.http.trouble["http://127.0.0.1:41001/v1/models"] = HttpReply(503, "loading", {})

    assert "tools does not say which model it serves: status 503 loading" in _refusal(StreamCut(), hide)


@pytest.mark.parametrize("fault", [*REQUESTS, *STREAMS, *TOOLS], ids=lambda fault: fault.kind)
def test_a_toxiproxy_lacks_the_toxics_that_know_http(fault: Fault) -> None:
    assert "has no toxic `" in _before_a_toxiproxy(fault)[0]


@pytest.mark.parametrize("fault", [*EDGES, LATENCY, NetDown()], ids=lambda fault: fault.kind)
def test_a_toxiproxy_does_for_harm_to_edges(fault: Fault) -> None:
    assert _before_a_toxiproxy(fault) == ()


def _before_a_toxiproxy(fault: Fault) -> tuple[str, ...]:
    async def main() -> tuple[str, ...]:
        target = InMemoryHost().add_target("engine-a")
        handles = {**target.handles, "proxy": {**target.handles["proxy"], "kind": "toxiproxy"}}
        return fault.problems((dataclasses.replace(target, handles=handles),))

    return run_virtual(main)


def test_a_slice_needs_a_byte_at_least() -> None:
    async def main() -> tuple[str, ...]:
        return NetSlicer(piece=Size(10), variation=Size(10)).problems((InMemoryHost().add_target("a"),))

    assert run_virtual(main) == ("variation 10B is not less than the piece 10B; a piece needs a byte at least",)


def test_an_engine_that_calls_no_tools_is_named_before_its_calls_are_cut() -> None:
    def say(world: InMemoryHost) -> None:
        answer = HttpReply(200, 'data: {"n": 1}\n\ndata: [DONE]\n\n', {})
        world.http.trouble["http://127.0.0.1:41001/v1/chat/completions"] = answer

    assert "tools makes no tool call when it is told to" in _refusal(StreamTruncateToolCall(), say)


def test_an_xid_that_nobody_knows_is_refused_with_those_that_are_known() -> None:
    assert GpuXid(code=14).problems((BARE,))[0].startswith("nothing is known of Xid 14; choose one of 13, 31, 43")


def test_a_node_is_lost_one_at_a_time() -> None:
    async def main() -> tuple[str, ...]:
        world = InMemoryHost()
        return NodeLoss().problems((world.add_target("a", node="n1"), world.add_target("b", node="n2")))

    assert run_virtual(main) == ("the targets live on 2 nodes (n1, n2); node_loss takes one at a time",)


def test_jitter_beyond_the_latency_is_refused() -> None:
    async def main() -> tuple[str, ...]:
        fault = NetLatency(latency=Duration(0.1), jitter=Duration(0.2))
        return fault.problems((InMemoryHost().add_target("a"),))

    assert run_virtual(main) == ("jitter 200ms is more than the latency 100ms; delays cannot be negative",)


def _refusal(fault: Fault, spoil: Callable[[InMemoryHost], None]) -> str:
    """What prepare or inject says in a world that was spoilt before."""

    async def attempt(world: InMemoryHost, target: Target) -> None:
        undo = await fault.prepare((target,), world.host)
        await fault.inject((target,), undo, world.host)

    async def main() -> str:
        world = InMemoryHost()
        target = world.add_target("tools", "tool", node="n1", processes=2)
        spoil(world)
        with pytest.raises(CannotInject) as refused:
            await attempt(world, target)
        return str(refused.value)

    return run_virtual(main)


def _die(world: InMemoryHost) -> None:
    world.supervisor.targets["tools"].holds.add("somebody")
    world.processes.signal(world.processes.identify(world.target("tools").pids[0]), 9)


@pytest.mark.parametrize("fault", HARMFUL, ids=lambda fault: fault.kind)
def test_a_dead_target_is_refused_before_anything_is_touched(fault: Fault) -> None:
    assert _refusal(fault, _die).startswith("tools is dead already: ")


def test_a_frozen_process_is_not_frozen_twice() -> None:
    def freeze(world: InMemoryHost) -> None:
        world.processes.signal(world.processes.identify(world.target("tools").pids[1]), 19)

    assert "is frozen already" in _refusal(ProcessStall(), freeze)


@pytest.mark.parametrize("fault", [NodeLoss(), NetDown()], ids=lambda fault: fault.kind)
def test_a_proxy_that_somebody_closed_by_hand_is_not_taken_over(fault: Fault) -> None:
    def close(world: InMemoryHost) -> None:
        world.proxy.listeners["tools"].enabled = False

    assert "is down already, by hand; enable it first: curl" in _refusal(fault, close)


@pytest.mark.parametrize("fault", [NodeLoss(), NetDown(), LATENCY, *TOXIC], ids=lambda fault: fault.kind)
def test_a_proxy_that_does_not_answer_is_named_with_its_admin_address(fault: Fault) -> None:
    def vanish(world: InMemoryHost) -> None:
        world.proxy.absent = True

    assert "proxy tools at 127.0.0.1:8474 would not show its state: no answer" in _refusal(fault, vanish)


@pytest.mark.parametrize("fault", GPU, ids=lambda fault: fault.kind)
def test_a_device_process_that_does_not_answer_is_named(fault: Fault) -> None:
    def vanish(world: InMemoryHost) -> None:
        world.devices.absent = True

    assert _refusal(fault, vanish) == "tools: nobody at 127.0.0.1:8479 knows the GPU tools-gpu0"


@pytest.mark.parametrize(
    "fault", [NodeLoss(), NodeDrain(), ProcessKill(), ProcessExitZero()], ids=lambda fault: fault.kind
)
def test_a_supervisor_that_accepts_no_hold_stops_the_kill(fault: Fault) -> None:
    def refuse(world: InMemoryHost) -> None:
        world.http.trouble["unix:///run/stack/control.sock:/targets/"] = HttpReply(503, "busy", {})

    assert _refusal(fault, refuse).startswith("tools: its supervisor at /run/stack/control.sock did not accept a hold")


@pytest.mark.parametrize("fault", [ProcessCrashLoop(), ProcessSlowStart(), DRIFT], ids=lambda fault: fault.kind)
def test_a_supervisor_that_accepts_no_burden_stops_the_fault(fault: Fault) -> None:
    def refuse(world: InMemoryHost) -> None:
        world.http.trouble["unix:///run/stack/control.sock:/targets/"] = HttpReply(400, "no such setting", {})

    assert _refusal(fault, refuse).startswith(
        "tools: its supervisor at /run/stack/control.sock did not accept a burden: status 400 no such setting"
    )


def test_a_drift_to_what_is_there_already_or_to_nothing_is_refused() -> None:
    fault = ConfigDrift(max_model_len=4096)
    assert _refusal(fault, lambda _: None) == "tools has these settings already; choose others"
    assert ConfigDrift().problems(())[0].startswith("nothing drifts; set model")


def test_an_engine_that_hides_its_settings_cannot_drift() -> None:
    def hide(world: InMemoryHost) -> None:
        world.http.trouble["http://127.0.0.1:41001/metrics"] = HttpReply(404, "", {})

    assert "does not tell its settings at 127.0.0.1:41001" in _refusal(DRIFT, hide)
