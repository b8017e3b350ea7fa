"""The supervisor's end of the line to the nursery, and a look at whole process groups through /proc."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


class NurseryGone(Exception):
    """The nursery ended, and everything it had started with it."""


PARTS = ("core", "worker")
"""What the processes of a target may be, beside the first one, as their titles end."""
_GONE = "the nursery ended, and every part with it"


class Children:
    """Starts parts and hears of their ends: `on_exit(pid, status)` for each, where a negative status is a signal."""

    def __init__(self) -> None:
        """Not connected yet."""
        self._on_exit: Callable[[int, int], None] = lambda _pid, _status: None
        self._starting: dict[str, list[asyncio.Future[int]]] = {}
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self.gone = asyncio.Event()

    async def connect(self, line: socket.socket, on_exit: Callable[[int, int], None]) -> asyncio.Task[None]:
        """Take our end of the line; the task handles news and ends when the nursery does."""
        self._on_exit = on_exit
        reader, self._writer = await asyncio.open_unix_connection(sock=line)
        return asyncio.get_running_loop().create_task(self._listen(reader, self._writer))

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while news := await reader.readline():
                self._hear(json.loads(news))
        except ConnectionError:
            pass
        finally:
            self.gone.set()
            writer.close()
            for waiting in (future for futures in self._starting.values() for future in futures):
                waiting.set_exception(NurseryGone(_GONE))

    def _hear(self, news: Mapping[str, Any]) -> None:
        if "started" in news:
            self._starting[news["started"]].pop(0).set_result(news["pid"])
            self._waiting[news["pid"]] = asyncio.get_running_loop().create_future()
            return
        ended = self._waiting.pop(news["exited"], None)
        if ended is not None:
            ended.set_result(news["status"])
            self._on_exit(news["exited"], news["status"])

    async def start(self, job: Mapping[str, Any]) -> int:
        """Fork a part; its pid, which is its process group too. Raises NurseryGone."""
        if self._writer is None or self.gone.is_set():
            raise NurseryGone(_GONE)
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._starting.setdefault(job["name"], []).append(started)
        self._writer.write(json.dumps(job).encode() + b"\n")
        return await started

    def teach(self, modules: Sequence[str]) -> None:
        """Have the nursery import these, so that parts that need them start sooner from then on; starts wait for it."""
        if self._writer is not None and not self.gone.is_set():
            self._writer.write(json.dumps({"learn": [*modules]}).encode() + b"\n")

    def is_running(self, pid: int) -> bool:
        """Whether a started part has not ended yet, as far as the nursery told."""
        return pid in self._waiting

    def running(self) -> tuple[int, ...]:
        """All that have not ended yet."""
        return tuple(self._waiting)

    async def end_of(self, pid: int) -> int | None:
        """Wait for a part to end; its exit status, or None when it had ended before."""
        ended = self._waiting.get(pid)
        return None if ended is None else await asyncio.shield(ended)


def _stat(pid: str) -> tuple[str, int] | None:
    """State letter and process group of a process."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # The command name stands in brackets and may hold anything, so fields are counted from the last bracket.
        fields = Path("/proc", pid, "stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return fields[0], int(fields[2])
    return None


def members(group: int) -> tuple[int, ...]:
    """Live processes of a process group, its leader first; zombies are not live."""
    names = [entry.name for entry in Path("/proc").iterdir()]
    pids = [int(name) for name in names if name.isdecimal() and _in_group(name, group)]
    return tuple(sorted(pids, key=lambda pid: (pid != group, pid)))


def _in_group(pid: str, group: int) -> bool:
    found = _stat(pid)
    return found is not None and found[1] == group and found[0] not in "ZX"


def named_parts(pids: Sequence[int]) -> dict[str, int]:
    """Those processes of a target that have a part of their own, by that part."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            word = Path("/proc", str(pid), "cmdline").read_text("utf-8", "replace").rstrip("\0 ").rpartition(" ")[2]
            if word in PARTS:
                found[word] = pid
    return found


def signal_group(group: int, number: int) -> None:
    """Signal all of a process group; nothing happens when it is empty."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


async def wait_until_gone(group: int, timeout_s: float) -> bool:
    """Whether a process group became empty in time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while members(group):  # noqa: ASYNC110  # the kernel tells nobody when a group becomes empty
                await asyncio.sleep(0.01)
    return not members(group)


def working_in(folder: Path) -> tuple[int, ...]:
    """Live processes whose working directory this is, whatever group and session they have made for themselves."""
    found = (entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return tuple(int(name) for name in found if _works_in(name, folder))


def _works_in(pid: str, folder: Path) -> bool:
    try:
        return Path("/proc", pid, "cwd").readlink() == folder and (_stat(pid) or "Z")[0] not in "ZX"
    except OSError:  # it has ended, or is none of ours
        return False


async def clear(folder: Path) -> None:
    """SIGKILL whoever still works in a folder and wait up to 2 s until nobody does."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(2.0):
            while left := working_in(folder):
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(0.01)


async def sweep(group: int) -> None:
    """SIGKILL what is left of a process group and wait up to 2 s until it is gone."""
    if members(group):
        signal_group(group, signal.SIGKILL)
        await wait_until_gone(group, 2.0)
