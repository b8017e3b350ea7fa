"""The supervisor's folders: the state folder that others read, and a scratch folder for data that dies with the stack.

state folder (0700)   supervisor.pid (locked while we live), control.sock, inventory.json, scratch (a path), logs/,
                      devices/ (the register files of the simulated GPUs), admin.token (0600)
scratch folder        below the system's temporary folder, because another user may have to reach into it
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from target_stack.disks import MIB, attach, detach
from target_stack.process import Account
from target_stack.vector_store.accounts import can_reach
from target_stack.vector_store.cluster import drop_shared_memory

_PREFIX = "brownout-"
_DISK = "disk"
_LOCK_PATIENCE_S = 2.0


class Occupied(Exception):
    """Another supervisor works in this state folder."""


@dataclass(frozen=True)
class Workspace:
    """An open state folder with its scratch folder. `lock` is a file descriptor; `disks` are the sizes in MiB of those
    that were attached, by part.
    """

    state: Path
    scratch: Path
    lock: int
    disks: dict[str, int] = field(default_factory=dict)

    @property
    def control_socket(self) -> Path:
        """Where the control API listens."""
        return self.state / "control.sock"

    @property
    def inventory(self) -> Path:
        """The record for the harness."""
        return self.state / "inventory.json"

    @property
    def token_file(self) -> Path:
        """Whoever can read it may use the admin APIs that listen on TCP."""
        return self.state / "admin.token"

    @property
    def devices(self) -> Path:
        """Where the register files of the simulated GPUs are."""
        return self.state / "devices"

    def log(self, name: str) -> Path:
        """Where a part's stdout and stderr go."""
        return self.state / "logs" / f"{name}.log"

    def events(self, name: str) -> Path:
        """Where a part's structured log goes."""
        return self.state / "logs" / f"{name}.events.jsonl"

    def folder(self, name: str, account: Account | None = None) -> Path:
        """A private scratch folder for one part, made on the first call."""
        path = self.scratch / name
        path.mkdir(mode=0o700, exist_ok=True)
        if account:
            os.chown(path, account.uid, account.gid)
        return path

    def add_disk(self, name: str, size_mib: int, account: Account | None) -> None:
        """Give a part a disk of this size for its data. Raises OSError."""
        place = self.folder(name, account) / _DISK
        place.mkdir(mode=0o700)
        attach(place, size_mib, account)
        self.disks[name] = size_mib

    def data(self, name: str, account: Account | None = None) -> Path:
        """Where a part keeps its data: on its disk, or where it has none in its folder."""
        folder = self.folder(name, account)
        return folder / _DISK if name in self.disks else folder

    def data_record(self, name: str) -> dict[str, Any] | None:
        """For the inventory: where others find the data of a part that has a disk, and how much that holds."""
        if name not in self.disks:
            return None
        return {"folder": f"/proc/{os.getpid()}/root{self.data(name)}", "limit_bytes": self.disks[name] * MIB}

    def close(self) -> None:
        """Remove all but the logs, and let the next supervisor in."""
        for name in self.disks:
            detach(self.data(name))
        _remove_tree(self.scratch)
        _remove_tree(self.devices)
        _forget(self.state)
        (self.state / "supervisor.pid").unlink(missing_ok=True)
        os.close(self.lock)


def _forget(state: Path) -> None:
    """Take back what was told to others."""
    for name in ("control.sock", "inventory.json", "scratch", "admin.token"):
        (state / name).unlink(missing_ok=True)


def _lock(path: Path) -> int:
    """Lock a file for as long as we and our nursery live; the last life's nursery may need a moment to die."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    patience_end = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patience_end:
                owner = os.read(fd, 20).decode("ascii", "replace").strip()
                os.close(fd)
                raise Occupied(f"a supervisor (pid {owner}) is already running in {path.parent}") from None
            time.sleep(0.02)
        else:
            return fd


def write_secret(path: Path, secret: str) -> None:
    """A new file that its owner alone can read. Raises OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f"{secret}\n")


def _remove_tree(path: Path) -> None:
    """Remove a folder, even while a dying process still writes into it."""
    for _ in range(50):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.02)


def scratch_left_in(state: Path) -> Path | None:
    """The scratch folder of a supervisor that was killed here, if it is still there and ours to remove."""
    with contextlib.suppress(OSError):
        left = Path((state / "scratch").read_text("utf-8").strip())
        if left.name.startswith(_PREFIX) and not left.is_symlink() and left.stat().st_uid == os.geteuid():
            return left
    return None


def base_folder(account: Account | None, candidates: Iterable[Path]) -> Path:
    """The first candidate that the account can reach. Raises OSError when there is none."""
    for folder in candidates:
        if account is None or can_reach(folder, account):
            return folder
    raise OSError("no temporary folder can be reached by the unprivileged user; set TMPDIR to one that can")


def open_workspace(state: Path, account: Account | None) -> Workspace:
    """Take possession of a state folder. Raises Occupied or OSError."""
    (state / "logs").mkdir(mode=0o700, parents=True, exist_ok=True)
    state.chmod(0o700)
    lock = _lock(state / "supervisor.pid")
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    left = scratch_left_in(state)
    if left:
        for folder in left.iterdir():
            drop_shared_memory(folder)
        _remove_tree(left)
    _forget(state)
    for old in (*(state / "logs").glob("*.log"), *(state / "logs").glob("*.events.jsonl*")):
        old.unlink()
    _remove_tree(state / "devices")
    (state / "devices").mkdir(mode=0o700)
    base = base_folder(account, (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")))  # noqa: S108  # mkdtemp below
    scratch = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    scratch.chmod(0o711)
    (state / "scratch").write_text(f"{scratch}\n", "utf-8")
    workspace = Workspace(state, scratch, lock)
    write_secret(workspace.token_file, secrets.token_hex(32))
    return workspace
