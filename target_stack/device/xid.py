"""What the driver's error numbers (Xid) mean for the work on a GPU.

nothing   a note in the log
process   the context that caused it is destroyed; the next one works
hang      work stops, nothing is destroyed
reset     every context is destroyed and none can be made until the GPU is reset
lost      the device has left the bus
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Effect = Literal["nothing", "process", "hang", "reset", "lost"]


@dataclass(frozen=True)
class Xid:
    """One number, with the words of the driver's log."""

    code: int
    text: str
    effect: Effect


_TABLE = (
    Xid(13, "Graphics Engine Exception", "process"),
    Xid(31, "MMU Fault", "process"),
    Xid(43, "Reset Channel Verif Error", "process"),
    Xid(45, "Preemptive Channel Removal", "process"),
    Xid(48, "Double Bit ECC Error", "process"),
    Xid(63, "Row Remapper: new row marked for remapping", "nothing"),
    Xid(64, "Row Remapper: failed to record a row", "reset"),
    Xid(74, "NVLINK: fatal error detected on link 0", "nothing"),
    Xid(79, "GPU has fallen off the bus", "lost"),
    Xid(94, "Contained ECC error", "process"),
    Xid(95, "Uncontained ECC error", "reset"),
    Xid(109, "Context switch timeout", "reset"),
    Xid(119, "Timeout waiting for RPC from GSP", "hang"),
    Xid(120, "GSP error", "reset"),
)

XIDS: Mapping[int, Xid] = MappingProxyType({each.code: each for each in _TABLE})
