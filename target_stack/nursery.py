"""The nursery: a small single-threaded process from which all parts of the stack are forked.

It has the heavy modules imported already, so a component starts in milliseconds. It dies with the supervisor and its
children die with it: however the supervisor ends, nothing is left. Orphans come to it too, so that none stays a zombie.

    supervisor ── {"name", "log", "component" + "config" | "argv" (+ "account", "folder")} ──► nursery ── fork ──► part
    supervisor ── {"learn": [module]} ──► nursery: what only some parts need, once nobody waits for a start
    supervisor ◄── {"started": name, "pid"}, {"exited": pid, "status"} ── nursery
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from target_stack.process import Account, adopt_orphans, become, die_with_parent, set_title
from target_stack.serve import COMPONENTS, component_main

_FIRST_FREE_FD, _LAST_FD = 3, 1 << 20


def preload() -> None:
    """Import every component. One that cannot be imported says so in its own log when it is started."""
    for component in COMPONENTS:
        with contextlib.suppress(Exception):
            importlib.import_module(f"target_stack.{component}.main")


def learn(modules: Sequence[str]) -> None:
    """Import these too, for all parts that are forked from now on."""
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    gc.freeze()


def _redirect(log: str) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.closerange(_FIRST_FREE_FD, _LAST_FD)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _run(job: Mapping[str, Any]) -> None:
    if "argv" in job:
        os.chdir(job.get("folder", "/"))
        os.execv(job["argv"][0], job["argv"])  # noqa: S606  # a list of arguments; no shell is wanted
    set_title(job["name"])
    component_main(job["component"])(job["config"])


def _be_child(job: Mapping[str, Any], nursery: int, grouped: int) -> NoReturn:
    """Become the part: own process group (then `grouped` is closed), own log, own user, dying with the nursery."""
    status = 1
    try:
        os.setsid()
        os.close(grouped)
        _reset_signals()
        _redirect(job["log"])
        if job.get("account"):
            become(Account(*job["account"]))
        die_with_parent(nursery)
        _run(job)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # the last frame of a forked process: it must never return into the nursery
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(status)


class Nursery:
    """The loop: orders in, forks, news out."""

    def __init__(self, orders: socket.socket) -> None:
        """Speak over this connected stream socket, one JSON object a line."""
        self._orders = orders
        self._pid = os.getpid()
        self._unread = b""

    def _tell(self, **news: Any) -> None:
        self._orders.sendall(json.dumps(news).encode() + b"\n")

    def _jobs(self) -> Iterator[Mapping[str, Any]]:
        data = self._orders.recv(1 << 16)
        if not data:
            raise SystemExit(0)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def _fork(self, job: Mapping[str, Any]) -> None:
        waiting, grouped = os.pipe()
        pid = os.fork()
        if pid == 0:
            _be_child(job, self._pid, grouped)
        os.close(grouped)
        # Nobody may hear of a process group that is not there yet: this returns when the child has made it, or is dead.
        os.read(waiting, 1)
        os.close(waiting)
        self._tell(started=job["name"], pid=pid)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._tell(exited=ended[0], status=os.waitstatus_to_exitcode(ended[1]))

    def run(self) -> NoReturn:
        """Serve until the supervisor closes its end."""
        awake, wake = socket.socketpair()
        awake.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            selector.register(self._orders, selectors.EVENT_READ)
            selector.register(awake, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if awake in ready:
                    awake.recv(4096)
                    self._reap()
                if self._orders in ready:
                    for job in self._jobs():
                        learn(job["learn"]) if "learn" in job else self._fork(job)


def _be_nursery(orders: socket.socket, supervisor: int) -> NoReturn:
    try:
        die_with_parent(supervisor)
        adopt_orphans()
        set_title("nursery")
        # Ctrl-C reaches the whole terminal group; the supervisor alone decides who ends when.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        preload()
        gc.freeze()
        Nursery(orders).run()
    finally:
        os._exit(0)


def open_nursery() -> tuple[int, socket.socket]:
    """Fork the nursery; its pid and our end of the line. Call it before any thread or event loop is there."""
    ours, theirs = socket.socketpair()
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be_nursery(theirs, supervisor)
    theirs.close()
    return pid, ours
