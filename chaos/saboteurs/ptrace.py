"""ptrace(2) as far as a saboteur needs it: attach to running processes so that our own death lets go of them unharmed.

Tracees are seized, never stopped for it, and without PTRACE_O_EXITKILL: when the tracer dies, the kernel detaches them
and lets them run on. Two habits keep a tracer's death at any instant from changing what they see:

* a signal on its way to a tracee is not taken out of its report (WNOWAIT) before it is handed on, or it would be lost;
* a call is failed with two words written in an order in which each half alone has no effect.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_CONT, _POKEUSER, _DETACH, _SYSCALL = 7, 6, 17, 24
_SEIZE, _INTERRUPT, _LISTEN, _GET_SYSCALL_INFO = 0x4206, 0x4207, 0x4208, 0x420E
_TRACE_SYSCALLS_AND_BIRTHS = 0x01 | 0x02 | 0x04 | 0x08  # TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE
_WALL = 0x40000000
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_EVENT_STOP = 128
_STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_INFO = struct.Struct("=B3xIQQQ6Q")
"""struct ptrace_syscall_info of an entry (linux/ptrace.h): op, arch, instruction, stack pointer, number, arguments."""
_ENTRY = 1
_X86_64 = 0xC000003E
_RAX, _ORIG_RAX = 80, 120
"""Offsets in struct user (sys/user.h), x86-64."""
_MANY_ROUNDS = 50


@dataclass(frozen=True)
class Call:
    """A system call that a thread is about to make."""

    tid: int
    number: int
    arguments: tuple[int, ...]


def _ptrace() -> Callable[[int, int, int, int], int]:
    function = ctypes.CDLL(None, use_errno=True).ptrace
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def ask(request: int, tid: int, address: int, data: int) -> int:
        """Raises OSError."""
        result: int = function(request, tid, address, data)
        if result == -1:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    return ask


class Tracer:
    """What one thread of ours traces: only the thread that made this may use it."""

    def __init__(self) -> None:
        """Trace nothing yet."""
        self._ask = _ptrace()
        self._info = ctypes.create_string_buffer(_INFO.size)
        self._at = ctypes.addressof(self._info)
        self._signals: dict[int, int] = {}

    def seize(self, pid: int, *, calls: bool) -> None:
        """Attach to every thread of a process, and with `calls` stop at each system call of it and of its children.
        Raises OSError; a process that ends meanwhile is no trouble.
        """
        seized: set[int] = set()
        options = _TRACE_SYSCALLS_AND_BIRTHS if calls else 0
        for _ in range(_MANY_ROUNDS):
            fresh = threads(pid) - seized
            if not fresh:
                return
            for tid in fresh:
                self._seize(tid, options, calls=calls)
            seized |= fresh

    def _seize(self, tid: int, options: int, *, calls: bool) -> None:
        try:
            self._ask(_SEIZE, tid, 0, options)
            if calls:
                self._ask(_INTERRUPT, tid, 0, 0)
        except ProcessLookupError:
            return
        except PermissionError:
            if tracer_of(tid) != os.getpid():  # a thread that a seized one has just made is ours already
                raise

    def stop(self, pid: int) -> None:
        """Have every thread of a seized process stop, and wait until all have. A signal that comes first stops it as
        well, and is handed on when it goes on.
        """
        for tid in threads(pid):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                self._ask(_INTERRUPT, tid, 0, 0)
                seen = os.waitid(os.P_PID, tid, os.WEXITED | os.WSTOPPED | os.WNOWAIT | _WALL)
                if seen and seen.si_code == os.CLD_TRAPPED and seen.si_status >> 8 == 0:
                    self._signals[tid] = seen.si_status

    def where(self, tid: int) -> int:
        """The address at which a stopped thread goes on; 0 when it is gone."""
        try:
            self._ask(_GET_SYSCALL_INFO, tid, _INFO.size, self._at)
        except ProcessLookupError:
            return 0
        return int(_INFO.unpack_from(self._info)[2])

    def nudge(self, pid: int) -> None:
        """Let a stopped process run for a moment and stop it again."""
        for tid in threads(pid):
            self._quietly(_CONT, tid, self._signals.pop(tid, 0))
        self.stop(pid)

    def release(self, pid: int) -> None:
        """Let go of a stopped process."""
        for tid in threads(pid):
            self._quietly(_DETACH, tid, self._signals.pop(tid, 0))

    def next_call(self, *, wait: bool) -> Call | None:
        """Handle what happens until a thread is about to make a call, which holds it there; None when nothing more
        happens now and `wait` is off. Raises ChildProcessError when nothing is traced any more.
        """
        options = os.WEXITED | os.WSTOPPED | os.WNOWAIT | _WALL | (0 if wait else os.WNOHANG)
        while True:
            seen = os.waitid(os.P_ALL, 0, options)
            if seen is None or not seen.si_pid:
                return None
            if seen.si_code not in (os.CLD_TRAPPED, os.CLD_STOPPED):
                os.waitid(os.P_PID, seen.si_pid, os.WEXITED | _WALL)
            elif seen.si_status == _SYSCALL_STOP:
                call = self._entered(seen.si_pid)
                if call:
                    return call
                self.resume(seen.si_pid)
            else:
                self._pass(seen.si_pid, seen.si_status)

    def _pass(self, tid: int, status: int) -> None:
        """Events go by; signals are handed on; a stopped process stays stopped until it is woken."""
        stopping = status & 0xFF in _STOPPING
        if status >> 8 == 0:
            self._quietly(_SYSCALL, tid, status)
        elif status >> 8 == _EVENT_STOP and stopping:
            self._quietly(_LISTEN, tid, 0)
        else:
            self.resume(tid)

    def _entered(self, tid: int) -> Call | None:
        """The call that a stopped thread is about to make; None at the way out of one, or in another's machine code."""
        try:
            self._ask(_GET_SYSCALL_INFO, tid, _INFO.size, self._at)
        except ProcessLookupError:
            return None
        op, arch, _, _, number, *arguments = _INFO.unpack_from(self._info)
        return Call(tid, number, tuple(arguments)) if op == _ENTRY and arch == _X86_64 else None

    def hold(self, call: Call) -> None:
        """Keep its thread where it is, and report it no more, until it is resumed."""
        try:
            os.waitid(os.P_PID, call.tid, os.WSTOPPED | _WALL | os.WNOHANG)
        except ChildProcessError:
            return

    def resume(self, tid: int) -> None:
        """Go on to the next stop."""
        self._quietly(_SYSCALL, tid, 0)

    def fail(self, call: Call, number: int) -> None:
        """Answer the call with an errno in the kernel's place. Only the number tells the kernel to skip it."""
        self._quietly(_POKEUSER, call.tid, -number, _RAX)
        self._quietly(_POKEUSER, call.tid, -1, _ORIG_RAX)
        self.resume(call.tid)

    def _quietly(self, request: int, tid: int, data: int, address: int = 0) -> None:
        """A thread may be killed while it is stopped."""
        try:
            self._ask(request, tid, address, data)
        except OSError as problem:
            if problem.errno != errno.ESRCH:
                raise


def threads(pid: int) -> set[int]:
    """Of a process now; empty when it is gone."""
    try:
        return {int(name) for name in os.listdir(f"/proc/{pid}/task")}  # noqa: PTH208  names only
    except OSError:
        return set()


def tracer_of(tid: int) -> int:
    """The process that traces it; 0 when none does."""
    try:
        text = Path(f"/proc/{tid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(next((line.split()[1] for line in text.splitlines() if line.startswith("TracerPid:")), "0"))


def why_not(pid: int) -> str:
    """Why a process could not be seized."""
    other = tracer_of(pid)
    return f"process {other} traces it, and there can be but one" if other else "it takes root or CAP_SYS_PTRACE"
