"""NVML is asked through its vendor's bindings, here on a library in memory that has the same ABI."""

from __future__ import annotations

import asyncio
import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pynvml
import pytest

from chaos.adapters import nvml
from chaos.adapters.programs import LocalPrograms

SUCCESS, NOT_SUPPORTED, INSUFFICIENT_SIZE, LOST = 0, 3, 7, 15
GIB = 1 << 30


def _out(pointer: Any, kind: Any) -> Any:
    return ctypes.cast(pointer, ctypes.POINTER(kind)).contents


class FakeLibrary:
    """libnvidia-ml.so.1 with one GPU: every function is called through the C calling convention of ctypes."""

    def __init__(self, *, lost: bool = False) -> None:
        """`lost` makes each question about the GPU fail as on one that has fallen off the bus."""
        self.lost = lost
        self._kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        answer: Callable[..., int] | None = getattr(type(self), f"fn_{name}", None)
        if answer is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            if self.lost and name.startswith("nvmlDeviceGet") and "Handle" not in name:
                return LOST
            return answer(self, *arguments)

        count = answer.__code__.co_argcount - 1
        thunk = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * count)(call)
        self._kept.append(thunk)
        return _Function(thunk)

    def fn_nvmlInitWithFlags(self, _flags: Any) -> int:  # noqa: N802  NVML's names
        return SUCCESS

    def fn_nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:  # noqa: N802
        if index:
            return 6  # NVML_ERROR_NOT_FOUND
        _out(handle, ctypes.c_void_p).value = 0xBEEF
        return SUCCESS

    def fn_nvmlDeviceGetMemoryInfo(self, _handle: Any, memory: Any) -> int:  # noqa: N802
        told = _out(memory, pynvml.c_nvmlMemory_t)
        told.total, told.free, told.used = 141 * GIB, 100 * GIB, 41 * GIB
        return SUCCESS

    def fn_nvmlDeviceGetComputeRunningProcesses_v3(self, _handle: Any, count: Any, infos: Any) -> int:  # noqa: N802
        if not infos:
            _out(count, ctypes.c_uint).value = 1
            return INSUFFICIENT_SIZE
        told = _out(infos, pynvml.c_nvmlProcessInfo_v3_t)
        told.pid, told.usedGpuMemory = 4711, 40 * GIB
        _out(count, ctypes.c_uint).value = 1
        return SUCCESS

    def fn_nvmlDeviceGetProcessUtilization(self, _handle: Any, samples: Any, count: Any, _since: Any) -> int:  # noqa: N802
        if not samples:
            _out(count, ctypes.c_uint).value = 1
            return INSUFFICIENT_SIZE
        told = _out(samples, pynvml.c_nvmlProcessUtilizationSample_t)
        told.pid, told.smUtil = 4711, 63
        return SUCCESS

    def fn_nvmlDeviceGetTemperature(self, _handle: Any, _sensor: Any, temperature: Any) -> int:  # noqa: N802
        _out(temperature, ctypes.c_uint).value = 61
        return SUCCESS

    def fn_nvmlDeviceGetMigMode(self, _handle: Any, _current: Any, _pending: Any) -> int:  # noqa: N802
        return NOT_SUPPORTED


class _Function:
    """Passes what pynvml passes: structures by reference, numbers by value."""

    def __init__(self, thunk: Any) -> None:
        self._thunk = thunk

    def __call__(self, *arguments: Any) -> int:
        passed = (ctypes.cast(each, ctypes.c_void_p) if _is_reference(each) else _plain(each) for each in arguments)
        return int(self._thunk(*passed))


def _is_reference(value: Any) -> bool:
    return type(value).__name__ == "CArgObject" or isinstance(value, ctypes.Array | ctypes._Pointer)


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLibrary]:
    fake = FakeLibrary()
    monkeypatch.setattr(pynvml, "nvmlLib", fake)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    pynvml.nvmlInit()
    return fake


def test_the_answers_have_the_shape_of_the_bundled_device_process(library: FakeLibrary) -> None:
    told = json.loads(json.dumps(nvml.answers(pynvml, 0, wall_s=1000.0)))
    assert {"total": 141 * GIB, "free": 100 * GIB, "used": 41 * GIB} == told["nvmlDeviceGetMemoryInfo"]["value"]
    assert [{"pid": 4711, "usedGpuMemory": 40 * GIB}] == told["nvmlDeviceGetComputeRunningProcesses"]["value"]
    assert [{"pid": 4711, "smUtil": 63}] == told["nvmlDeviceGetProcessUtilization"]["value"]
    assert (0, 61) == (told["nvmlDeviceGetTemperature"]["return"], told["nvmlDeviceGetTemperature"]["value"])


def test_what_a_gpu_or_a_driver_does_not_tell_is_a_code_and_no_failure(library: FakeLibrary) -> None:
    told = nvml.answers(pynvml, 0, wall_s=1000.0)
    assert (NOT_SUPPORTED, None) == (told["nvmlDeviceGetMigMode"]["return"], told["nvmlDeviceGetMigMode"]["value"])
    assert 13 == told["nvmlDeviceGetPowerUsage"]["return"]  # the library has no such function


def test_a_lost_gpu_says_so_to_every_question(library: FakeLibrary) -> None:
    library.lost = True
    told = nvml.answers(pynvml, 0, wall_s=1000.0)
    assert LOST == told["nvmlDeviceGetMemoryInfo"]["return"]


def test_a_gpu_that_is_not_there_is_an_error(library: FakeLibrary) -> None:
    with pytest.raises(pynvml.NVMLError):
        nvml.answers(pynvml, 1, wall_s=1000.0)


def test_a_machine_without_the_library_is_told_by_the_exit_status() -> None:
    ran = asyncio.run(LocalPrograms().look([sys.executable, "-c", _BLIND], timeout_s=20))
    assert (1, "") == (ran.status, ran.output)
    assert "NVML Shared Library Not Found" in ran.errors


_BLIND = """
import ctypes, pynvml
def nothing(name): raise OSError(name)
pynvml.CDLL = nothing
from chaos.adapters.nvml import main
raise SystemExit(main(["0"]))
"""
