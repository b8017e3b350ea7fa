"""The probes, on a host that is a few dictionaries."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from chaos.inventory import Target
from chaos.ports import Host, HttpReply, ProcessId
from chaos.probes.catalog import PROBES, by_kind, new_probes
from chaos.probes.gpu import Gpu
from chaos.probes.http_health import HttpHealth
from chaos.probes.metrics_text import MetricsText
from chaos.probes.process_state import ProcessState
from chaos.probes.stack_events import StackEvents

REFUSED = HttpReply(0, "", {}, error="refused: connection refused")
GATEWAY = Target(
    name="gateway",
    role="gateway",
    node=None,
    pids=(11, 12),
    address="h:1",
    metrics="http://h:1/metrics",
    events="http://h:1/debug/events",
    spans="http://h:1/debug/spans",
    handles={"device": {"admin": "h:8", "id": "n-gpu0"}},
)


class World:
    """All ports of a small host: replies by URL, states by pid, files by path; its clock ticks on each call."""

    def __init__(self, replies=None, states=None, files=None):
        self.replies, self.states, self.files, self.time, self.asked = (
            replies or {},
            states or {},
            files or {},
            50.0,
            [],
        )

    def host(self):
        return Host(
            clock=self, processes=self, programs=self, network=self, http=self, redis=self, postgres=self, files=self
        )

    def now(self):
        return self.time

    async def call(self, method, url, json=None, *, timeout_s=2.0):
        self.asked.append((method, url))
        self.time += 0.25
        return self.replies.get(url, REFUSED)

    def identify(self, pid):
        return ProcessId(pid, 1) if pid in self.states else None

    def state(self, process):
        return self.states.get(process.pid)

    def read(self, path):
        return self.files.get(str(path))


def look(probe, world, target=GATEWAY):
    return asyncio.run(probe.read(target, world.host()))


def text(body, status=200):
    return HttpReply(status, body if isinstance(body, str) else json.dumps(body), {})


def event(seq, mono, name="breaker_opened"):
    return {"seq": seq, "mono": mono, "name": name, "dependency": "tool"}


def test_health_is_status_and_latency():
    reading = look(HttpHealth(), World({"http://h:1/health": text("", 200)}))
    assert reading.values == {"health_status": 200.0, "health_latency_s": 0.25}


NVML = {
    "nvmlDeviceGetMemoryInfo": {"total": 100, "free": 60, "used": 40},
    "nvmlDeviceGetUtilizationRates": {"gpu": 79, "memory": 39},
    "nvmlDeviceGetTemperature": 33,
    "nvmlDeviceGetPowerUsage": 136579,
    "nvmlDeviceGetClockInfo": {"NVML_CLOCK_SM": 1440},
    "nvmlDeviceGetCurrentClocksEventReasons": 64,
    "nvmlDeviceGetTotalEccErrors": {
        "NVML_MEMORY_ERROR_TYPE_CORRECTED": {"NVML_VOLATILE_ECC": 2},
        "NVML_MEMORY_ERROR_TYPE_UNCORRECTED": {"NVML_VOLATILE_ECC": 1},
    },
    "nvmlDeviceGetMigMode": {"current": 0, "pending": 0},
}


def test_a_gpu_is_read_in_base_units():
    answers = {name: {"return": 0, "value": value} for name, value in NVML.items()}
    values = look(Gpu(), World({"http://h:8/nvml/v1/devices/n-gpu0": text(answers)})).values
    assert (values["gpu_utilization_ratio"], values["gpu_power_watts"], values["gpu_lost"]) == (0.79, 136.579, 0.0)
    assert (values["gpu_memory_used_bytes"], values["gpu_ecc_uncorrected_volatile"]) == (40.0, 1.0)


def test_a_lost_gpu_is_an_observation_and_a_silent_device_process_is_none():
    lost = {name: {"return": 15, "value": None} for name in NVML}
    assert look(Gpu(), World({"http://h:8/nvml/v1/devices/n-gpu0": text(lost)})).values == {"gpu_lost": 1.0}
    assert look(Gpu(), World()).error == "refused: connection refused"
    assert "another shape" in look(Gpu(), World({"http://h:8/nvml/v1/devices/n-gpu0": text({"a": 1})})).error


def test_no_reply_to_a_health_check_is_an_observation_too():
    reading = look(HttpHealth(), World())
    assert (reading.values["health_status"], reading.error) == (0.0, None)


def test_parts_without_a_health_endpoint_are_pinged():
    world = World()
    look(HttpHealth(), world, Target("tools", "tool", None, (), "h:2"))
    assert world.asked == [("GET", "http://h:2/ping")]


def test_metrics_become_series():
    reading = look(MetricsText(), World({"http://h:1/metrics": text('up{b="2",a="1"} 3\n')}))
    assert (reading.values, reading.error) == ({'up{a="1",b="2"}': 3.0, "scrape_duration_seconds": 0.25}, None)


@pytest.mark.parametrize(
    ("reply", "why"),
    [(REFUSED, "refused"), (text("no", 500), "500"), (text("<html>"), "no series"), (text(""), "no series")],
)
def test_metrics_that_cannot_be_read_say_why(reply, why):
    reading = look(MetricsText(), World({"http://h:1/metrics": reply}))
    assert reading.values == {}
    assert why in reading.error


def test_the_kernel_says_which_part_is_up_stopped_or_gone():
    world = World(states={11: "S"}, files={"/proc/11/status": "Name:\tx\nVmRSS:\t    2048 kB\n"})
    assert look(ProcessState(), world).values == {
        'proc_up{part="0"}': 1.0,
        'proc_stopped{part="0"}': 0.0,
        'rss_bytes{part="0"}': 2048 * 1024.0,
        'proc_up{part="1"}': 0.0,
        'proc_stopped{part="1"}': 0.0,
    }
    assert look(ProcessState(), World(states={11: "S", 12: "T"})).values['proc_stopped{part="1"}'] == 1.0


def test_events_are_told_once_and_in_order():
    world, probe = World(), StackEvents()
    world.replies["http://h:1/debug/events?after=0"] = text({"events": [event(2, 61.0), event(1, 60.0)], "last": 2})
    world.replies["http://h:1/debug/events?after=2"] = text({"events": [event(3, 62.0, "breaker_closed")], "last": 3})
    world.replies["http://h:1/debug/events?after=3"] = text({"events": [], "last": 3})
    assert [told["mono"] for told in look(probe, world).events] == [60.0, 61.0]
    second = look(probe, world)
    assert [told["name"] for told in second.events] == ["breaker_closed"]
    assert second.values == {"events_last": 3.0}
    assert look(probe, world).events == ()


def test_events_from_before_the_first_look_belong_to_another_run():
    world, probe = World(), StackEvents()
    world.replies["http://h:1/debug/events?after=0"] = text({"events": [event(1, 3.0), event(2, 50.1)], "last": 2})
    assert [told["seq"] for told in look(probe, world).events] == [2]


def test_a_target_that_counts_anew_is_read_from_its_start():
    world, probe = World(), StackEvents()
    world.replies["http://h:1/debug/events?after=0"] = text({"events": [], "last": 9})
    look(probe, world)
    world.replies["http://h:1/debug/events?after=9"] = text({"events": [], "last": 1})
    world.replies["http://h:1/debug/events?after=0"] = text({"events": [event(1, 70.0)], "last": 1})
    assert [told["seq"] for told in look(probe, world).events] == [1]


def test_events_that_the_target_forgot_are_counted():
    world, probe = World(), StackEvents()
    world.replies["http://h:1/debug/events?after=0"] = text({"events": [event(1, 60.0)], "last": 1})
    look(probe, world)
    world.replies["http://h:1/debug/events?after=1"] = text({"events": [event(5, 61.0)], "last": 5})
    assert look(probe, world).values == {"events_last": 5.0, "events_missed": 3.0}


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{}", '{"events": 3, "last": 1}', '{"events": ["x"], "last": 1}', '{"events": [], "last": Infinity}',
     '{"events": [{"seq": 1, "name": "x"}], "last": 1}', "[" * 5000],
)  # fmt: skip
def test_events_in_another_shape_are_an_error_and_no_exception(body):
    reading = look(StackEvents(), World({"http://h:1/debug/events?after=0": text(body)}))
    assert (reading.events, reading.values) == ((), {})
    assert reading.error


def test_a_probe_applies_only_where_there_is_something_to_read():
    bare = Target("cache", "cache", None, (), "h:9", wire="redis")
    assert [probe.kind for probe in new_probes() if probe.applies_to(bare)] == []
    everything = replace(GATEWAY, role="tool")
    store = Target("vector-store", "vector-store", None, (), "h:9", wire="postgres")
    applied = [probe.kind for probe in new_probes() if probe.applies_to(everything) or probe.applies_to(store)]
    assert applied == [probe.kind for probe in PROBES]
    assert "tool_records" not in [probe.kind for probe in new_probes() if probe.applies_to(GATEWAY)]


def test_the_catalog_names_every_probe_once():
    assert list(by_kind) == [probe.kind for probe in PROBES]
    assert all(probe.summary and probe.period_s > 0 for probe in PROBES)


def test_every_run_gets_probes_with_no_memory_of_another():
    assert all(a is not b for a, b in zip(new_probes(), new_probes(), strict=True))
