"""Which system calls read, write, open and sync files, and which file each is about. Linux on x86-64."""

from __future__ import annotations

import os
from pathlib import Path

from chaos.saboteurs.ptrace import Call

_OPENS_HERE = {2: "open", 85: "creat"}
_OPENS_AT = {257: "openat", 437: "openat2"}
_READS = {0: "read", 17: "pread64", 19: "readv", 295: "preadv", 327: "preadv2"}
_WRITES = {
    1: "write",
    18: "pwrite64",
    20: "writev",
    77: "ftruncate",
    285: "fallocate",
    296: "pwritev",
    328: "pwritev2",
}
_SYNCS = {74: "fsync", 75: "fdatasync", 277: "sync_file_range"}
OPERATIONS = {"open": {**_OPENS_HERE, **_OPENS_AT}, "read": _READS, "write": _WRITES, "fsync": _SYNCS}
"""Names of calls by number (arch/x86/entry/syscalls/syscall_64.tbl), by what they do to a file."""
_AT_FDCWD = -100
_LONGEST_PATH = 4096
_PAGE = 4096


def numbers(operations: tuple[str, ...]) -> frozenset[int]:
    """The calls that do one of these. Raises KeyError."""
    return frozenset(number for operation in operations for number in OPERATIONS[operation])


def file_of(call: Call) -> str | None:
    """The absolute path of the file that one of these calls is about; None when that cannot be told."""
    try:
        if call.number in _OPENS_HERE:
            return _resolved(call.tid, _AT_FDCWD, _text(call.tid, call.arguments[0]))
        if call.number in _OPENS_AT:
            return _resolved(call.tid, _signed(call.arguments[0]), _text(call.tid, call.arguments[1]))
        return os.readlink(f"/proc/{call.tid}/fd/{_signed(call.arguments[0])}")  # noqa: PTH115  once for each call
    except OSError:
        return None


def is_below(path: str, folder: str) -> bool:
    """The folder itself, or anything in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _signed(register: int) -> int:
    """A C int in a register."""
    return (register & 0xFFFFFFFF) - ((register & 0x80000000) << 1)


def _resolved(tid: int, folder: int, path: str) -> str:
    if path.startswith("/"):
        return os.path.realpath(path)
    at = f"/proc/{tid}/cwd" if folder == _AT_FDCWD else f"/proc/{tid}/fd/{folder}"
    return os.path.realpath(Path(at).readlink() / path)


def _text(tid: int, address: int) -> str:
    """A string in a thread's memory. It may end just before a page that is not there."""
    with open(f"/proc/{tid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123  once for each call
        memory.seek(address)
        found = memory.read(_PAGE - address % _PAGE)
        while b"\0" not in found and len(found) < _LONGEST_PATH:
            found += memory.read(_PAGE)
    return os.fsdecode(found.partition(b"\0")[0])
