"""A host that writes down everything done to it, and can die in the middle.

Wraps any `Host`, in memory or real. `changes` are the deeds that alter the world; looks are not among them. With
`cut_at` set the caller is cancelled at that call, before or after it has its effect, and can do nothing from then on,
as if it had been killed there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from chaos.ports import (
    Clock,
    ConnectResult,
    Exchanged,
    Files,
    Host,
    Http,
    HttpReply,
    Network,
    Postgres,
    Processes,
    ProcessId,
    ProcessState,
    Programs,
    Ran,
    Redis,
    RedisReply,
    Rows,
    Segments,
    Wire,
)

T = TypeVar("T")
_LOOKING = ("GET", "HEAD")
_QUESTIONS = ("/v1/completions", "/v1/chat/completions", "/mcp")
"""Asking a model for some tokens alters nothing, nor does what observers ask of tools."""
_REDIS_LOOKS = ("PING", "INFO", "SELECT", "EXISTS", "DBSIZE", "SCAN", "TIME")


@dataclass(frozen=True)
class Deed:
    """One call on a port, in words: `signal 4711 9`, `POST unix:///s.sock:/targets/tools/hold`."""

    what: str
    changes: bool


@dataclass
class Recording:
    """The log of a host and the place where its user dies. `host` is the wrapped host to hand out.

    `torn` is the file whose writing was cut off, `swept` the folders and beginnings of names of which drafts were
    removed.
    """

    inner: Host
    log: list[Deed] = field(default_factory=list)
    cut_at: int | None = None
    cut_after_effect: bool = False
    torn: Path | None = None
    swept: list[tuple[Path, str]] = field(default_factory=list)
    _calls: int = 0
    _cut: bool = False

    @property
    def host(self) -> Host:
        """The same world, recorded."""
        return Host(
            clock=_RecordedClock(self, self.inner.clock),
            processes=_RecordedProcesses(self, self.inner.processes),
            programs=_RecordedPrograms(self, self.inner.programs),
            network=_RecordedNetwork(self, self.inner.network),
            http=_RecordedHttp(self, self.inner.http),
            redis=_RecordedRedis(self, self.inner.redis),
            postgres=_RecordedPostgres(self, self.inner.postgres),
            files=_RecordedFiles(self, self.inner.files),
        )

    @property
    def changes(self) -> tuple[str, ...]:
        """What was altered, in order."""
        return tuple(deed.what for deed in self.log if deed.changes)

    def do(self, what: str, effect: Callable[[], T], *, changes: bool = False) -> T:
        """One call that needs no waiting."""
        here = self._begin(what, changes=changes)
        if here and not self.cut_after_effect:
            self._die()
        result = effect()
        if here:
            self._die()
        return result

    async def wait(self, what: str, effect: Callable[[], Awaitable[T]], *, changes: bool = False) -> T:
        """One call that is waited for."""
        here = self._begin(what, changes=changes)
        if here and not self.cut_after_effect:
            self._die()
        result = await effect()
        if here:
            self._die()
        return result

    def _begin(self, what: str, *, changes: bool) -> bool:
        """Write the call down; whether it is the one to be cut at."""
        if self._cut:
            self._die()
        self._calls += 1
        self.log.append(Deed(what, changes))
        return self.cut_at == self._calls

    def _die(self) -> None:
        self._cut = True
        raise asyncio.CancelledError


@dataclass(frozen=True)
class _RecordedClock:
    recording: Recording
    inner: Clock

    def now(self) -> float:
        return self.inner.now()

    def wall(self) -> float:
        return self.inner.wall()

    def boot_id(self) -> str:
        return self.inner.boot_id()

    async def sleep_until(self, when: float) -> None:
        await self.recording.wait(f"sleep until {when}", lambda: self.inner.sleep_until(when))


@dataclass(frozen=True)
class _RecordedProcesses:
    recording: Recording
    inner: Processes

    def identify(self, pid: int) -> ProcessId | None:
        return self.recording.do(f"identify {pid}", lambda: self.inner.identify(pid))

    def state(self, process: ProcessId) -> ProcessState | None:
        return self.recording.do(f"state {process.pid}", lambda: self.inner.state(process))

    def children(self, process: ProcessId) -> tuple[ProcessId, ...]:
        return self.recording.do(f"children {process.pid}", lambda: self.inner.children(process))

    def signal(self, process: ProcessId, number: int) -> bool:
        what = f"signal {process.pid} {int(number)}"
        return self.recording.do(what, lambda: self.inner.signal(process, number), changes=True)

    def with_argument(self, argument: str) -> tuple[ProcessId, ...]:
        return self.recording.do(f"processes with {argument}", lambda: self.inner.with_argument(argument))


@dataclass(frozen=True)
class _RecordedPrograms:
    recording: Recording
    inner: Programs

    async def look(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        return await self.recording.wait(" ".join(words), lambda: self.inner.look(words, timeout_s=timeout_s))

    async def run(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        def effect() -> Awaitable[Ran]:
            return self.inner.run(words, timeout_s=timeout_s)

        return await self.recording.wait(" ".join(words), effect, changes=True)

    async def sabotage(self, program: str, warrant: Path, *, timeout_s: float = 10.0) -> Ran:
        def effect() -> Awaitable[Ran]:
            return self.inner.sabotage(program, warrant, timeout_s=timeout_s)

        return await self.recording.wait(f"sabotage {program} {warrant}", effect, changes=True)

    async def mend(self, program: str, mark: str, *, timeout_s: float = 10.0) -> Ran:
        def effect() -> Awaitable[Ran]:
            return self.inner.mend(program, mark, timeout_s=timeout_s)

        return await self.recording.wait(f"mend {program} {mark}", effect, changes=True)


@dataclass(frozen=True)
class _RecordedNetwork:
    recording: Recording
    inner: Network

    async def connect(self, address: str, timeout_s: float) -> ConnectResult:
        return await self.recording.wait(f"connect {address}", lambda: self.inner.connect(address, timeout_s))

    async def round_trip(self, address: str, wire: Wire, timeout_s: float) -> float | None:
        what = f"round trip {address}"
        return await self.recording.wait(what, lambda: self.inner.round_trip(address, wire, timeout_s))

    async def exchange(self, address: str, wire: Wire, size: int, timeout_s: float) -> Exchanged:
        what = f"exchange {size} bytes with {address}"
        return await self.recording.wait(what, lambda: self.inner.exchange(address, wire, size, timeout_s))

    async def segments(self, address: str, wire: Wire, size: int, timeout_s: float) -> Segments:
        what = f"exchange {size} bytes in small segments with {address}"
        return await self.recording.wait(what, lambda: self.inner.segments(address, wire, size, timeout_s))


@dataclass(frozen=True)
class _RecordedHttp:
    recording: Recording
    inner: Http

    async def call(
        self,
        method: str,
        url: str,
        json: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 2.0,
        token_file: str | None = None,
    ) -> HttpReply:
        def effect() -> Awaitable[HttpReply]:
            return self.inner.call(method, url, json, headers=headers, timeout_s=timeout_s, token_file=token_file)

        return await self.recording.wait(f"{method} {url}", effect, changes=_alters(method, url))


def _alters(method: str, url: str) -> bool:
    return method not in _LOOKING and not url.partition("?")[0].endswith(_QUESTIONS)


def _writes(statement: str) -> bool:
    """A statement that is limited to no row at all writes nothing."""
    return not statement.startswith("SELECT ") and not re.fullmatch(r"DELETE FROM \w+ WHERE 1 = 0", statement)


def _redis_alters(commands: Sequence[Sequence[str]]) -> bool:
    """A transaction that makes a key and drops it leaves nothing."""
    match commands:
        case [["MULTI"], ["SET", made, _], ["DEL", dropped], ["EXEC"]] if made == dropped:
            return False
    return any(command[0] not in _REDIS_LOOKS for command in commands)


@dataclass(frozen=True)
class _RecordedPostgres:
    recording: Recording
    inner: Postgres

    async def ask(self, address: str, statements: Sequence[str], *, timeout_s: float = 1.0) -> tuple[Rows, ...]:
        def effect() -> Awaitable[tuple[Rows, ...]]:
            return self.inner.ask(address, statements, timeout_s=timeout_s)

        what = f"postgres {address}: {'; '.join(statements)}"
        return await self.recording.wait(what, effect, changes=any(map(_writes, statements)))


@dataclass(frozen=True)
class _RecordedRedis:
    recording: Recording
    inner: Redis

    async def ask(
        self, address: str, commands: Sequence[Sequence[str]], *, timeout_s: float = 1.0
    ) -> tuple[RedisReply, ...]:
        def effect() -> Awaitable[tuple[RedisReply, ...]]:
            return self.inner.ask(address, commands, timeout_s=timeout_s)

        what = f"redis {address}: {'; '.join(' '.join(command) for command in commands)}"
        return await self.recording.wait(what, effect, changes=_redis_alters(commands))


@dataclass(frozen=True)
class _RecordedFiles:
    recording: Recording
    inner: Files

    def read(self, path: Path) -> str | None:
        return self.recording.do(f"read {path}", lambda: self.inner.read(path))

    def write_atomic(self, path: Path, text: str) -> None:
        torn = self.recording.torn
        self.recording.torn = torn or path
        self.recording.do(f"write {path}", lambda: self.inner.write_atomic(path, text), changes=True)
        self.recording.torn = torn

    def remove(self, path: Path) -> None:
        self.recording.do(f"remove {path}", lambda: self.inner.remove(path), changes=True)

    def names(self, folder: Path) -> tuple[str, ...]:
        return self.recording.do(f"names {folder}", lambda: self.inner.names(folder))

    def sweep(self, folder: Path, prefix: str) -> None:
        self.recording.swept.append((folder, prefix))
        self.recording.do(f"sweep {folder} {prefix}", lambda: self.inner.sweep(folder, prefix), changes=True)

    def write_through(self, path: Path, text: str) -> None:
        self.recording.do(f"write {path}", lambda: self.inner.write_through(path, text), changes=True)

    def make_folder(self, path: Path) -> None:
        self.recording.do(f"make {path}", lambda: self.inner.make_folder(path), changes=True)

    def remove_folder(self, path: Path) -> bool:
        return self.recording.do(f"remove {path}", lambda: self.inner.remove_folder(path), changes=True)

    def trial(self, folder: Path) -> int:
        return self.recording.do(f"trial {folder}", lambda: self.inner.trial(folder))
