"""The driver's error numbers (Xid): what each means, what becomes of the work, what the vendor advises.

From NVIDIA's Xid catalogue for Ampere and newer, the column of the immediate action, in our words. The number alone
decides between leaving a GPU alone, restarting a program, resetting the GPU and restarting the machine: treating all
alike either keeps sick GPUs in service or retires healthy ones (NVIDIA/k8s-device-plugin#1974).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Action = Literal["none", "restart the program", "reset the GPU", "restart the machine", "check the links"]


@dataclass(frozen=True)
class Xid:
    """One number. `consequence` is what happens to whoever works on the GPU."""

    code: int
    meaning: str
    consequence: str
    action: Action
    more: str = ""


_ENDS = "the process that caused it loses its context"
_ALL_END = "every process on the GPU loses its context, and none can begin until the action is taken"
_GOES_ON = "work goes on"

_TABLE = (
    Xid(13, "a kernel did what it must not (out of range, bad instruction)", _ENDS, "restart the program"),
    Xid(31, "a program touched memory that is not its own", _ENDS, "restart the program"),
    Xid(43, "a program's work was stopped after an error of its own", _ENDS, "none", "the program fails by itself"),
    Xid(45, "work was removed because of an earlier error", _ENDS, "none", "look for the number before it"),
    Xid(46, "the GPU stopped processing", _ALL_END, "reset the GPU"),
    Xid(48, "two bits of memory flipped", _ENDS, "reset the GPU", "with 63 or 64: drain it first"),
    Xid(62, "a controller inside the GPU halted", _ALL_END, "reset the GPU"),
    Xid(63, "a bad row of memory was marked for remapping", _GOES_ON, "none", "the next reset remaps it"),
    Xid(64, "a bad row could not be remapped", _ALL_END, "reset the GPU", "replace it if that does not help"),
    Xid(74, "an NVLink failed", _GOES_ON, "check the links", "work that uses the link may hang"),
    Xid(79, "the GPU has fallen off the bus", "all work on it is gone and no call reaches it", "restart the machine"),
    Xid(92, "many single bits of memory flip and are corrected", _GOES_ON, "none", "watch for 48 and 64"),
    Xid(94, "a memory error was contained to one process", _ENDS, "restart the program"),
    Xid(95, "a memory error was not contained", _ALL_END, "reset the GPU"),
    Xid(109, "a context switch did not end in time", _ALL_END, "reset the GPU"),
    Xid(119, "the GPU's system processor does not answer", "work stands still and no error comes", "reset the GPU"),
    Xid(120, "the GPU's system processor failed", _ALL_END, "reset the GPU"),
    Xid(140, "an ECC error could not be recovered", _ALL_END, "reset the GPU"),
    Xid(154, "the driver says which action the errors before it need", _GOES_ON, "none", "take the action it names"),
)

XIDS: Mapping[int, Xid] = MappingProxyType({each.code: each for each in _TABLE})


def table() -> tuple[str, ...]:
    """One line for each number, for people."""
    return tuple(
        f"{each.code:>3}  {each.meaning}: {each.consequence}; "
        f"action: {each.action}{f' ({each.more})' if each.more else ''}"
        for each in _TABLE
    )


def advice(code: int) -> str:
    """What the vendor advises, for a message."""
    known = XIDS.get(code)
    return f"{known.meaning}; action: {known.action}" if known else "unknown"
