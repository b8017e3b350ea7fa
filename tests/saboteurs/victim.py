"""A process to harm: it does what it is told, one line at a time, and says how it went. Also its handle in a test."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

from chaos.adapters.processes import ProcFs
from chaos.ports import ProcessId

_PR_SET_PTRACER = 0x59616D61
_COARSE = 5


class Victim:
    """The process and the way to it."""

    def __init__(self) -> None:
        words = [sys.executable, __file__]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        found = ProcFs().identify(self.process.pid)
        assert found
        self.id: ProcessId = found
        assert self.ask("ready") == "ready"

    def ask(self, *words: object) -> Any:
        """Its answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    @property
    def processes(self) -> list[list[int]]:
        """As orders name them."""
        return [[self.id.pid, self.id.start_ticks]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    heard = {"signals": 0, "ticks": 0}

    def count(*_: object) -> None:
        heard["signals"] += 1

    def tick() -> None:
        while True:
            time.sleep(0.001)
            heard["ticks"] += 1

    signal.signal(signal.SIGUSR1, count)
    threading.Thread(target=tick, daemon=True).start()
    for line in sys.stdin:
        what, *rest = json.loads(line)
        match what:
            case "ready":
                told: Any = "ready"
            case "use":
                told = used(Path(rest[0]))
            case "clock":
                told = clocks(libc)
            case "child":
                told = in_child(lambda rest=rest: used(Path(rest[0])) if rest else clocks(libc))
            case _:
                told = heard[what]
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def used(path: Path) -> dict[str, Any]:
    """How each operation on the file went, and how long all took."""
    began, found = time.monotonic(), {}
    try:
        file = os.open(path, os.O_CREAT | os.O_RDWR)
    except OSError as problem:
        return {"open": errno.errorcode[problem.errno or 0]}
    for name, use in (
        ("open", lambda: None),
        ("write", lambda: os.write(file, b"x")),
        ("fsync", lambda: os.fsync(file)),
        ("read", lambda: os.pread(file, 1, 0)),
    ):
        try:
            use()
            found[name] = "ok"
        except OSError as problem:
            found[name] = errno.errorcode[problem.errno or 0]
    os.close(file)
    return {**found, "took_s": time.monotonic() - began}


def clocks(libc: ctypes.CDLL) -> dict[str, float]:
    """What each way to ask says."""
    libc.time.restype = ctypes.c_long
    twice = ctypes.c_long()
    libc.time(ctypes.byref(twice))
    pair = (ctypes.c_long * 2)()
    libc.gettimeofday(ctypes.byref(pair), None)
    return {
        "clock_gettime": time.time(),
        "coarse": time.clock_gettime(_COARSE),
        "gettimeofday": pair[0] + pair[1] / 1e6,
        "time": float(libc.time(None)),
        "time_into": float(twice.value),
        "monotonic": time.monotonic(),
    }


def in_child(work: Any) -> Any:
    """The same, done by a new child."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.write(theirs, json.dumps(work()).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as ear:
        told = json.loads(ear.read())
    os.wait()
    return told


if __name__ == "__main__":
    main()
