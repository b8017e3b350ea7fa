"""Takes memory or time of GPUs through torch, as a notebook that lands on them would; without a GPU, of this machine.

Orders: `resource` (memory, time), `share`, `gpus` (numbers in the order of the PCI bus, as NVML counts; none: the
processor instead), and for memory without a GPU `bytes` and `reserve`, the free bytes below which none are taken.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos.saboteurs.life import HarmFailed, Orders
from chaos.saboteurs.memory import available

_BEAT_S = 0.1
_SIDE = {"cuda": 4096, "cpu": 384}
"""Of the square matrices that are multiplied: a millisecond or a few of work at a time."""
_MIB = 1 << 20


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """In force once all that was ordered is held, or once every device has done its first piece of work."""
    torch = _torch(orders)
    places = [f"cuda:{gpu}" for gpu in orders["gpus"]] or ["cpu"]
    over, share = threading.Event(), float(orders["share"])
    try:
        if orders["resource"] == "memory":
            held = [_taken(torch, place, orders) for place in places]
        else:
            held = [_at_work(torch, place, share, over) for place in places]
    except RuntimeError as failure:  # how torch reports every trouble with a device
        raise HarmFailed(str(failure).partition("\n")[0]) from failure
    try:
        yield
    finally:
        over.set()
        held.clear()


def _torch(orders: Orders) -> Any:
    """The module, which must see the GPUs as NVML numbers them."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        import torch  # noqa: PLC0415  after the environment is set, and only here: it is an extra, and large
    except ImportError as failure:
        raise HarmFailed(f"torch cannot be imported ({failure}): pip install 'brownout[gpu]'") from failure
    if orders["gpus"] and not torch.cuda.is_available():
        raise HarmFailed("NVML knows a GPU and torch sees none: this build of torch is without CUDA, or older")
    return torch


def _taken(torch: Any, place: str, orders: Orders) -> Any:
    """Memory of a device that is really there: it is written to."""
    if place == "cpu":
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")  # the kernel ends this process first
        wanted, free, total = int(orders["bytes"]), available() - int(orders["reserve"]), available()
    else:
        free, total = torch.cuda.mem_get_info(place)
        wanted = int(float(orders["share"]) * total)
    if wanted > free:
        raise HarmFailed(
            f"{place}: {wanted // _MIB} MiB of {total // _MIB} are wanted and {free // _MIB} are free; "
            f"take a share of {free / total:.0%} at most"
        )
    return torch.ones(wanted, dtype=torch.uint8, device=place)


def _at_work(torch: Any, place: str, share: float, over: threading.Event) -> threading.Thread:
    """Multiplies matrices for a share of each beat. Torch lets go of the interpreter while it computes."""
    side = _SIDE[place.partition(":")[0]]
    matrix = torch.ones((side, side), device=place)

    def once() -> None:
        torch.matmul(matrix, matrix)
        if place != "cpu":
            torch.cuda.synchronize(place)

    def on_and_on() -> None:
        while not over.is_set():
            began = time.monotonic()
            while time.monotonic() - began < _BEAT_S * share:
                once()
            over.wait(max(0.0, began + _BEAT_S - time.monotonic()))

    once()
    worker = threading.Thread(target=on_and_on, daemon=True)
    worker.start()
    return worker
