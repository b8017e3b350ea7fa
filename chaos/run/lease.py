"""The right to keep a fault in place for a time, as a file that is on disk before any harm is done.

A lease holds all that a stranger needs to revert. Whoever finds one may revert: the runner, the watchdog, `brownout
recover`, all at once if need be. Its end is a monotonic time of one boot, so a stepped clock neither ends nor extends
it, and a lease of another boot has ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from chaos.faults.fault import Undo
from chaos.ports import Files

VERSION = 1
_SUFFIX = ".json"


@dataclass(frozen=True)
class Lease:
    """One fault in force. `fault` is its name in the experiment; times are monotonic seconds of the boot `boot_id`."""

    id: str
    run: str
    run_dir: str
    stack: str
    fault: str
    kind: str
    targets: tuple[str, ...]
    undo: Undo
    boot_id: str
    granted_at: float
    lease_until: float

    def ended(self, now: float, boot_id: str) -> bool:
        """Whether its time is up."""
        return boot_id != self.boot_id or now >= self.lease_until

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "id": self.id,
            "run": self.run,
            "run_dir": self.run_dir,
            "stack": self.stack,
            "fault": {"name": self.fault, "kind": self.kind},
            "targets": list(self.targets),
            "undo": dict(self.undo),
            "boot_id": self.boot_id,
            "granted_at": self.granted_at,
            "lease_until": self.lease_until,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read it back. Raises KeyError, TypeError or ValueError on a shape or version that is not ours."""
        if record["version"] != VERSION:
            raise ValueError(f"lease version {record['version']!r}, expected {VERSION}")
        return cls(
            id=str(record["id"]),
            run=str(record["run"]),
            run_dir=str(record["run_dir"]),
            stack=str(record["stack"]),
            fault=str(record["fault"]["name"]),
            kind=str(record["fault"]["kind"]),
            targets=tuple(record["targets"]),
            undo=dict(record["undo"]),
            boot_id=str(record["boot_id"]),
            granted_at=float(record["granted_at"]),
            lease_until=float(record["lease_until"]),
        )


@dataclass(frozen=True)
class Damaged:
    """A lease file that cannot be read: some harm may be in place that nobody can name."""

    path: Path
    why: str


@dataclass(frozen=True)
class Stored:
    """What lies in the folder. Damaged files belong to no run that could be told, so no filter hides them."""

    leases: tuple[Lease, ...]
    damaged: tuple[Damaged, ...] = ()


@dataclass(frozen=True)
class LeaseStore:
    """The folder of all leases of one state directory, one file each."""

    folder: Path
    files: Files

    def grant(self, lease: Lease) -> None:
        """Put the lease on disk, synced; only then may harm be done. Raises OSError, or ValueError for a bad id."""
        self.files.write_atomic(self._path(lease.id), json.dumps(lease.to_json(), indent=1) + "\n")

    def holds(self, lease_id: str) -> bool:
        """Whether it is still there."""
        return self.files.read(self._path(lease_id)) is not None

    def remove(self, lease_id: str) -> None:
        """Forget a lease whose fault is reverted; safe to repeat."""
        self.files.remove(self._path(lease_id))

    def sweep(self, run: str) -> None:
        """Remove leases of a dead run that it was killed in the middle of writing: nothing was injected under them."""
        self.files.sweep(self.folder, f"{run}-")

    def list(self, *, run: str | None = None, stack: str | None = None) -> Stored:
        """All leases, oldest first, or those of one run or stack; damaged files are told, never raised."""
        leases: dict[str, Lease] = {}
        damaged: dict[Path, Damaged] = {}
        for name in self.files.names(self.folder):
            if not name.endswith(_SUFFIX):
                continue
            path = self.folder / name
            try:
                text = self.files.read(path)
                if text is not None:  # else reverted by somebody between the two looks
                    leases[name] = Lease.from_json(json.loads(text))
            except (OSError, KeyError, TypeError, ValueError) as error:
                damaged[path] = Damaged(path, f"{type(error).__name__}: {error}")
        wanted = [x for x in leases.values() if run in (None, x.run) and stack in (None, x.stack)]
        wanted.sort(key=lambda lease: (lease.granted_at, lease.id))
        return Stored(tuple(wanted), tuple(damaged.values()))

    def _path(self, lease_id: str) -> Path:
        if not re.fullmatch(r"[^/\0.][^/\0]*", lease_id):
            raise ValueError(f"lease id {lease_id!r} cannot be a file name")
        return self.folder / (lease_id + _SUFFIX)
