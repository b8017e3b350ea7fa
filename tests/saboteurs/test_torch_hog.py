"""What the hog asks of torch, on a torch that keeps count; tests/real/gpu runs it on the real one."""

from __future__ import annotations

import os
import sys
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from chaos.saboteurs import torch_hog
from chaos.saboteurs.life import HarmFailed

TOTAL = 1000 << 20


@dataclass
class FakeCuda:
    """Two GPUs of 1000 MiB."""

    free: int = TOTAL
    there: bool = True
    waits: int = 0

    def is_available(self) -> bool:
        return self.there

    def mem_get_info(self, place: str) -> tuple[int, int]:
        assert place.startswith("cuda:")
        return self.free, TOTAL

    def synchronize(self, place: str) -> None:
        assert place.startswith("cuda:")
        self.waits += 1


@dataclass
class FakeTorch:
    """Notes what was made where."""

    cuda: FakeCuda = field(default_factory=FakeCuda)
    made: list[tuple[Any, str]] = field(default_factory=list)
    multiplied: int = 0
    uint8: str = "uint8"

    def ones(self, shape: Any, *, device: str, dtype: str | None = None) -> str:
        del dtype
        self.made.append((shape, device))
        return device

    def matmul(self, left: str, right: str) -> None:
        assert left == right
        self.multiplied += 1
        time.sleep(0.001)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTorch]:
    fake = FakeTorch()
    module = types.ModuleType("torch")
    for name in ("cuda", "ones", "matmul", "uint8"):
        setattr(module, name, getattr(fake, name))
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    return fake


def orders(resource: str, share: float, *gpus: int) -> dict[str, Any]:
    return {"resource": resource, "share": share, "gpus": list(gpus)}


def test_a_share_of_each_gpus_memory_is_taken(torch: FakeTorch) -> None:
    with torch_hog.harm(orders("memory", 0.5, 0, 1)):
        assert [(TOTAL // 2, "cuda:0"), (TOTAL // 2, "cuda:1")] == torch.made


def test_more_than_is_free_is_refused_with_what_could_be_had(torch: FakeTorch) -> None:
    torch.cuda.free = 200 << 20
    with pytest.raises(HarmFailed, match=r"cuda:0: 500 MiB of 1000 are wanted and 200 are free; take .* 20% at most"):
        torch_hog.harm(orders("memory", 0.5, 0)).__enter__()
    assert [] == torch.made


def test_what_torch_says_against_it_is_told(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 500 MiB\nSee documentation")

    monkeypatch.setattr(sys.modules["torch"], "ones", full)
    with pytest.raises(HarmFailed, match=r"^CUDA out of memory\. Tried to allocate 500 MiB$"):
        torch_hog.harm(orders("memory", 0.5, 0)).__enter__()


def test_time_is_taken_until_it_is_over_and_the_gpu_is_waited_for(torch: FakeTorch) -> None:
    with torch_hog.harm(orders("time", 0.5, 0)):
        deadline = time.monotonic() + 5
        while torch.multiplied < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert torch.multiplied >= 5
    assert torch.cuda.waits >= torch.multiplied - 1
    time.sleep(0.15)
    done = torch.multiplied
    time.sleep(0.25)
    assert done == torch.multiplied


def test_gpus_are_numbered_as_nvml_numbers_them_and_none_is_hidden(torch: FakeTorch) -> None:
    with torch_hog.harm(orders("memory", 0.1, 0)):
        assert ("PCI_BUS_ID", None) == (os.environ.get("CUDA_DEVICE_ORDER"), os.environ.get("CUDA_VISIBLE_DEVICES"))


def test_a_torch_that_sees_no_gpu_where_nvml_does_is_no_reason_to_harm_the_machine(torch: FakeTorch) -> None:
    torch.cuda.there = False
    with pytest.raises(HarmFailed, match="NVML knows a GPU and torch sees none"):
        torch_hog.harm(orders("time", 0.5, 0)).__enter__()


def test_without_torch_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HarmFailed, match=r"pip install 'brownout\[gpu\]'"):
        torch_hog.harm(orders("time", 0.5)).__enter__()


def test_without_a_gpu_the_processor_computes(torch: FakeTorch) -> None:
    with torch_hog.harm(orders("time", 0.2)):
        assert [((384, 384), "cpu")] == torch.made
    assert 0 == torch.cuda.waits
