"""The world as the harness sees it: small protocols for time, dice, processes, network, HTTP and files.

Everything with an effect comes in through one of these, so the same runner, faults and probes work on a real machine
(`chaos.adapters`) and on an in-memory host in virtual time (`chaos.testing`).

    Host ─┬─ clock      monotonic seconds; the same on every process of one machine
          ├─ processes  look at /proc, send signals; a pid is always paired with its start time
          ├─ programs   run a tool to its end; start a saboteur
          ├─ network    TCP connects and timed round trips: the independent eye of the network faults
          ├─ http       short control calls (proxy admin, supervisor socket, scrapes)
          ├─ redis      a few commands to a cache
          ├─ postgres   a few statements to a database
          └─ files      whole-file reads, atomic writes, removal; the kernel's control files
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol


class Clock(Protocol):
    """Time. `now` is CLOCK_MONOTONIC in seconds: comparable between processes of one boot, never stepped."""

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def wall(self) -> float:
        """Unix seconds, for people to read; decides nothing but whether another's clock is right."""
        ...

    def boot_id(self) -> str:
        """Changes at every boot, so that a stored monotonic time can be told to be from another life."""
        ...

    async def sleep_until(self, when: float) -> None:
        """Return at monotonic time `when`, at once if it is past. Accurate to well under a millisecond."""
        ...


class Entropy(Protocol):
    """Randomness: one independent stream per name, so that a new consumer never shifts another's draws."""

    def stream(self, name: str) -> random.Random:
        """A generator seeded from the run's seed and `name` alone."""
        ...


@dataclass(frozen=True)
class ProcessId:
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    start_ticks: int


ProcessState = Literal["R", "S", "D", "T", "t", "Z", "X", "I"]


class Processes(Protocol):
    """Processes of this machine."""

    def identify(self, pid: int) -> ProcessId | None:
        """The process with this number now, or None when there is none (a zombie counts as none)."""
        ...

    def state(self, process: ProcessId) -> ProcessState | None:
        """Its state letter from /proc, or None when that very process is gone (a zombie counts as gone)."""
        ...

    def children(self, process: ProcessId) -> tuple[ProcessId, ...]:
        """Live direct children."""
        ...

    def signal(self, process: ProcessId, number: int) -> bool:
        """Send a signal to exactly that process. False when it is gone. Raises PermissionError."""
        ...

    def with_argument(self, argument: str) -> tuple[ProcessId, ...]:
        """Live processes that have exactly this word on their command line, whoever started them."""
        ...


@dataclass(frozen=True)
class Need:
    """What a fault cannot do without on this machine. `how` tells a person how to get it.

    root: an effective user id of 0; trace: leave to trace other processes (ptrace(2)); machine: this kind of processor;
    tool: a program on the PATH; module: an importable Python module; path: a file that can be opened for reading and
    writing (/dev/fuse); kernel: a part of the kernel that may be left out of it.
    """

    kind: Literal["root", "trace", "machine", "tool", "module", "path", "kernel"]
    name: str
    how: str

    def __str__(self) -> str:
        """As it stands in the catalog."""
        return self.kind if self.kind == self.name else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Ran:
    """A program that was run. `status` is its exit status, -N after signal N, and None when it could not be started or
    did not end in time; `errors` then says why.
    """

    status: int | None
    output: str
    errors: str


class Programs(Protocol):
    """Programs of this machine, and saboteurs: processes of ours that do harm by being there (chaos/saboteurs)."""

    async def look(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        """Run a program that alters nothing to its end; what still runs when the time is up is killed. Never raises."""
        ...

    async def run(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        """Run any program to its end; what still runs when the time is up is killed. Never raises."""
        ...

    async def sabotage(self, program: str, warrant: Path, *, timeout_s: float = 10.0) -> Ran:
        """Start a saboteur on the orders in the file `warrant`; it stays there while that file does. Returns when the
        harm is in force (status 0) or has failed (`errors` says why). Never raises.
        """
        ...

    async def mend(self, program: str, mark: str, *, timeout_s: float = 10.0) -> Ran:
        """Take away what saboteurs of that program have left behind under a mark when they were killed (status 0 when
        nothing is left). Never raises.
        """
        ...


ConnectResult = Literal["accepted", "refused", "timeout", "unreachable"]
Wire = Literal["http", "postgres", "redis"]


@dataclass(frozen=True)
class Exchanged:
    """How a longer talk on one connection went. `received` counts the bytes that came, `took_s` from the question on.

    whole: all was answered; broken: the connection ended inside; silent: nothing more came in time; none: there was no
    connection, or no answer of this wire.
    """

    ending: Literal["whole", "broken", "silent", "none"]
    received: int
    took_s: float


@dataclass(frozen=True)
class Segments:
    """A longer talk in small segments, as TCP at the observer's end counts it. Times in seconds.

    `rtt_s` is the round trip of the handshake between the two kernels, None when there was no connection. Of our
    segments with data: `sent`, `resent` of them (a SYN counts), `copied`: came twice as the other end says,
    `reordered`: how often it says that they were overtaken. Of those that came: `received`, `early`: before one that
    was sent before it. `garbled` (a wrong checksum) and `again` (all that had come before) are counted for all
    connections that end in the observer's network at the same time.
    """

    talk: Exchanged
    rtt_s: float | None = None
    sent: int = 0
    resent: int = 0
    copied: int = 0
    reordered: int = 0
    received: int = 0
    early: int = 0
    garbled: int = 0
    again: int = 0


class Network(Protocol):
    """TCP as an outside observer. Addresses are `host:port`."""

    async def connect(self, address: str, timeout_s: float) -> ConnectResult:
        """Open and close one connection."""
        ...

    async def round_trip(self, address: str, wire: Wire, timeout_s: float) -> float | None:
        """Seconds for one smallest question and answer of the given wire (`GET /ping`, Postgres SSLRequest, Redis PING)
        on a connection opened before the clock starts; None when no answer came in time or the connection broke.
        """
        ...

    async def exchange(self, address: str, wire: Wire, size: int, timeout_s: float) -> Exchanged:
        """Ask on one connection, again and again, until `size` bytes and more have gone each way."""
        ...

    async def segments(self, address: str, wire: Wire, size: int, timeout_s: float) -> Segments:
        """The same in segments of a few hundred bytes, with what TCP counts. Asks nothing when `size` is 0."""
        ...


@dataclass(frozen=True)
class HttpReply:
    """A whole reply. `status` 0 means that no reply came; `error` then says why."""

    status: int
    body: str
    headers: Mapping[str, str]
    error: str | None = None


class Http(Protocol):
    """Short HTTP calls. `url` is http://host:port/path or unix:///path/to.sock:/path for a Unix socket."""

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
        """One call; never raises for network trouble (see HttpReply.error). `token_file` holds the bearer token that
        the server demands: callers know its path alone, so no token can get into a record.
        """
        ...


RedisReply = str | int | None | tuple["RedisReply", ...]
"""What a command brings: a text, a number, nothing, or several of them."""


class RedisRefused(Exception):
    """The server refused a command; the message is its own words."""


class Redis(Protocol):
    """Servers that speak the Redis protocol (Redis, Valkey)."""

    async def ask(
        self, address: str, commands: Sequence[Sequence[str]], *, timeout_s: float = 1.0
    ) -> tuple[RedisReply, ...]:
        """Send all on one new connection, in order; their replies. Raises RedisRefused when one is refused (the others
        may have had their effect), and OSError when no answer came.
        """
        ...


Rows = tuple[tuple[str | None, ...], ...]
"""What a statement brings, as PostgreSQL writes it in text."""


class PostgresRefused(Exception):
    """The server refused a statement. `code` is the SQLSTATE."""

    def __init__(self, code: str, message: str) -> None:
        """Keep both."""
        super().__init__(f"{message} ({code})")
        self.code = code


class Postgres(Protocol):
    """PostgreSQL servers."""

    async def ask(self, address: str, statements: Sequence[str], *, timeout_s: float = 1.0) -> tuple[Rows, ...]:
        """Send all on one new connection as one transaction; the rows of each. Raises PostgresRefused, then nothing
        happened, and OSError when no answer came, then all or nothing happened.
        """
        ...


class Files(Protocol):
    """Whole files."""

    def read(self, path: Path) -> str | None:
        """The text, or None when there is no such file."""
        ...

    def write_atomic(self, path: Path, text: str) -> None:
        """Write, fsync and rename, so that a reader and a crash see the old or the new file. Raises OSError."""
        ...

    def remove(self, path: Path) -> None:
        """Remove if present."""
        ...

    def names(self, folder: Path) -> tuple[str, ...]:
        """Sorted file names in a folder; empty when there is no such folder."""
        ...

    def sweep(self, folder: Path, prefix: str) -> None:
        """Remove what a dead writer left half-written of files whose names begin with `prefix`."""
        ...

    def write_through(self, path: Path, text: str) -> None:
        """One write into a file that is there: how the kernel's control files are told something. Raises OSError."""
        ...

    def make_folder(self, path: Path) -> None:
        """Make a folder in one that is there; fine when it is there already. Raises OSError."""
        ...

    def remove_folder(self, path: Path) -> bool:
        """Remove a folder that is empty, as the kernel sees it; whether it is gone. Never raises."""
        ...

    def trial(self, folder: Path) -> int:
        """Write one block into a nameless file of this folder, which leaves no trace; 0, or the errno that it met."""
        ...


@dataclass(frozen=True)
class Host:
    """All ports in one value, handed to faults and probes."""

    clock: Clock
    processes: Processes
    programs: Programs
    network: Network
    http: Http
    redis: Redis
    postgres: Postgres
    files: Files
