"""What the device process answers, without a socket."""

from __future__ import annotations

import json

import pytest

from target_stack.device.gpu import Gpu
from target_stack.device.panel import Panel
from target_stack.device.registers import Registers


class Desk:
    """A panel over two devices, and a clock."""

    def __init__(self) -> None:
        self.gpus = [Gpu(f"node-{n}-gpu0", n, Registers.private()) for n in range(2)]
        for gpu in self.gpus:
            gpu.power_on(0.0)
        self.panel = Panel(self.gpus)
        self.now = 0.0

    def ask(self, method, target, body=None):
        self.now += 1.0
        answer = self.panel.answer(method, target, json.dumps(body).encode(), self.now)
        return answer.status, answer.body

    def get(self, target):
        return json.loads(self.ask("GET", target)[1])

    def harm(self, kind, mark="m", device="node-0-gpu0", **settings):
        return self.ask("POST", f"/devices/{device}/conditions", {"kind": kind, "mark": mark, **settings})[0]


@pytest.fixture
def desk():
    return Desk()


def test_whoever_controls_the_devices_must_show_the_token_and_looking_is_free(desk):
    guarded = Panel(desk.gpus, "t0ken")
    for method, target in (
        ("GET", "/devices"),
        ("POST", "/devices/0/conditions"),
        ("DELETE", "/devices/0/conditions/m"),
    ):
        for said in ("", "Bearer t0ke", "t0ken"):
            assert guarded.answer(method, target, b"{}", 1.0, said).status == 401
    assert guarded.answer("GET", "/devices", b"", 1.0, "Bearer t0ken").status == 200
    assert {200} == {guarded.answer("GET", each, b"", 1.0).status for each in ("/ping", "/metrics", "/nvml/v1/devices")}


def test_nvml_answers_in_its_own_units(desk):
    answers = desk.get("/nvml/v1/devices/0")
    assert answers["nvmlDeviceGetMemoryInfo"]["value"] == {"total": 24 << 30, "free": 24 << 30, "used": 0}
    assert answers["nvmlDeviceGetPowerUsage"]["value"] == 30_000
    assert answers["nvmlDeviceGetUtilizationRates"] == {
        "return": 0,
        "name": "NVML_SUCCESS",
        "value": {"gpu": 0, "memory": 0},
    }
    assert answers["nvmlDeviceGetClockInfo"]["value"]["NVML_CLOCK_SM"] == 1440


def test_a_device_is_found_by_index_name_or_uuid_and_a_function_by_its_name(desk):
    for name in ("1", "node-1-gpu0", "GPU-node-1-gpu0"):
        assert desk.get(f"/nvml/v1/devices/{name}/nvmlDeviceGetIndex")["value"] == 1
    assert desk.ask("GET", "/nvml/v1/devices/0/nvmlDeviceGetLuck")[0] == 404
    assert desk.ask("GET", "/nvml/v1/devices/7")[0] == 404


def test_a_lost_device_answers_every_call_with_gpu_is_lost_and_its_neighbour_is_well(desk):
    assert desk.harm("lost") == 201
    assert {each["return"] for each in desk.get("/nvml/v1/devices/0").values()} == {15}
    assert {each["return"] for each in desk.get("/nvml/v1/devices/1").values()} == {0}


def test_an_exporter_loses_the_series_of_a_lost_device_but_not_its_last_xid(desk):
    desk.harm("lost")
    text = desk.ask("GET", "/metrics")[1]
    shown = [line for line in text.splitlines() if not line.startswith("#") and 'Hostname="node-0"' in line]
    assert [line.partition("{")[0] for line in shown] == ["DCGM_FI_DEV_XID_ERRORS"]
    assert shown[0].endswith(" 79")
    assert text.count("DCGM_FI_DEV_GPU_TEMP{") == 1


def test_memory_that_somebody_takes_is_listed_as_a_process(desk):
    desk.harm("reserved_memory", share=0.5)
    answers = desk.get("/nvml/v1/devices/0")
    assert answers["nvmlDeviceGetMemoryInfo"]["value"]["used"] == 12 << 30
    assert answers["nvmlDeviceGetComputeRunningProcesses"]["value"] == [{"pid": 0, "usedGpuMemory": 12 << 30}]


def test_slices_and_their_mode_are_told(desk):
    desk.harm("mig", profile="1g.6gb")
    answers = desk.get("/nvml/v1/devices/0")
    assert answers["nvmlDeviceGetMigMode"]["value"] == {"current": 1, "pending": 1}
    assert answers["nvmlDeviceGetGpuInstances"]["value"] == [{"id": 1, "profile": "1g.6gb", "memorySizeMB": 6144}]


def test_a_device_in_mig_mode_names_its_instance_and_tells_no_load_as_a_whole(desk):
    desk.harm("mig", profile="2g.12gb")
    answers = desk.get("/nvml/v1/devices/0")
    assert answers["nvmlDeviceGetMigDeviceHandleByIndex"]["value"] == [{"uuid": "MIG-node-0-gpu0-2g.12gb"}]
    assert answers["nvmlDeviceGetUtilizationRates"]["name"] == "NVML_ERROR_NOT_SUPPORTED"
    shown = [line for line in desk.ask("GET", "/metrics")[1].splitlines() if 'Hostname="node-0"' in line]
    assert all('GPU_I_PROFILE="2g.12gb",GPU_I_ID="1"' in line for line in shown)
    assert not any(line.startswith("DCGM_FI_DEV_GPU_UTIL{") for line in shown)


def test_who_computes_beside_the_engine_is_listed_with_its_load(desk):
    desk.harm("contention", share=0.5)
    answers = desk.get("/nvml/v1/devices/0")
    assert answers["nvmlDeviceGetComputeRunningProcesses"]["value"] == [{"pid": 0, "usedGpuMemory": 512 << 20}]
    assert answers["nvmlDeviceGetProcessUtilization"]["value"] == [{"pid": 0, "smUtil": 50}]


def test_a_row_that_waits_or_has_no_spare_is_told_by_nvml_and_by_the_exporter(desk):
    desk.harm("ecc", device="node-0-gpu0")
    desk.harm("ecc", device="node-1-gpu0", remap="failed")
    told = [desk.get(f"/nvml/v1/devices/{n}")["nvmlDeviceGetRemappedRows"]["value"] for n in range(2)]
    assert [(each["isPending"], each["failureOccurred"]) for each in told] == [(True, False), (False, True)]
    text = desk.ask("GET", "/metrics")[1]
    for series, wanted in (("DCGM_FI_DEV_ROW_REMAP_PENDING", "10"), ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "01")):
        assert wanted == "".join(line[-1] for line in text.splitlines() if line.startswith(f"{series}{{"))


def test_xids_are_events_in_the_order_of_time_over_all_devices(desk):
    desk.harm("xid", code=31)
    desk.harm("ecc", mark="n", device="node-1-gpu0")
    desk.harm("lost", mark="o")
    told = desk.get("/debug/events?after=1")
    assert [(event["seq"], event["code"], event["device"]) for event in told["events"]] == [
        (2, 48, "node-1-gpu0"),
        (3, 63, "node-1-gpu0"),
        (4, 94, "node-1-gpu0"),
        (5, 79, "node-0-gpu0"),
    ]
    assert told["last"] == 5


def test_a_condition_is_shown_and_taken_away_by_its_mark(desk):
    desk.harm("throttle", clock=0.4)
    shown = desk.get("/devices/node-0-gpu0")["conditions"]
    assert shown == {"m": {"kind": "throttle", "reason": "hw_thermal_slowdown", "clock": 0.4}}
    assert desk.ask("DELETE", "/devices/node-0-gpu0/conditions/m") == (204, "")
    assert desk.ask("DELETE", "/devices/node-0-gpu0/conditions/m")[0] == 404
    assert [each["conditions"] for each in desk.get("/devices")["devices"]] == [{}, {}]


@pytest.mark.parametrize("body", [None, [], {"kind": "sulking"}, {"kind": "xid", "code": "31"}])
def test_a_condition_that_makes_no_sense_is_400_and_changes_nothing(desk, body):
    assert desk.ask("POST", "/devices/0/conditions", body)[0] == 400
    assert desk.get("/devices/0")["conditions"] == {}


@pytest.mark.parametrize(
    ("method", "target"), [("GET", "/"), ("POST", "/devices"), ("PUT", "/devices/0/conditions"), ("GET", "/nvml/v1")]
)
def test_a_route_that_is_not_there_is_404(desk, method, target):
    assert desk.ask(method, target)[0] == 404
