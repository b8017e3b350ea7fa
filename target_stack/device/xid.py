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


ROW_REMAPPED = 63
REMAP_FAILED = 64
MANY_CORRECTED = 92

_TABLE = (
    Xid(13, "Graphics Engine Exception", "process"),
    Xid(31, "MMU Fault", "process"),
    Xid(43, "Reset Channel Verif Error", "process"),
    Xid(45, "Preemptive Channel Removal", "process"),
    Xid(46, "GPU stopped processing", "reset"),
    Xid(48, "Double Bit ECC Error", "process"),
    Xid(62, "Internal micro-controller halt", "reset"),
    Xid(ROW_REMAPPED, "Row Remapper: new row marked for remapping", "nothing"),
    Xid(REMAP_FAILED, "Row Remapper: failed to record a row", "reset"),
    Xid(74, "NVLINK: fatal error detected on link 0", "nothing"),
    Xid(79, "GPU has fallen off the bus", "lost"),
    Xid(MANY_CORRECTED, "High single-bit ECC error rate", "nothing"),
    Xid(94, "Contained ECC error", "process"),
    Xid(95, "Uncontained ECC error", "reset"),
    Xid(109, "Context switch timeout", "reset"),
    Xid(119, "Timeout waiting for RPC from GSP", "hang"),
    Xid(120, "GSP error", "reset"),
    Xid(140, "Unrecovered ECC error", "reset"),
    Xid(154, "GPU recovery action changed to GPU Reset Required", "nothing"),
)

XIDS: Mapping[int, Xid] = MappingProxyType({each.code: each for each in _TABLE})
