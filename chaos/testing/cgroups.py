"""Control groups in memory, in the layout of either version: folders whose files the kernel understands.

world.groups.version = 2          # or 1, or None for a machine without them
world.groups.group_of(pid, "cpu")
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chaos.testing.stack import ProcessTable

_ROOT = Path("/sys/fs/cgroup")
_HOME = "stack/unit"


@dataclass
class _Group:
    knobs: dict[str, str] = field(default_factory=dict)
    hits: int = 0


class FakeGroups:
    """A process runs in the group of its parent, the first ones in `/stack/unit`. Who is limited hits its limit between
    any two looks.
    """

    def __init__(self, processes: ProcessTable) -> None:
        """The older layout, as one folder tree for each controller."""
        self.version: Literal[1, 2] | None = 1
        self.delegated = "cpuset cpu io memory pids"
        self._processes = processes
        self._made: dict[Path, _Group] = {}
        self._members: dict[tuple[int, Path], Path] = {}

    def group_of(self, pid: int, controller: str) -> Path:
        """Its folder."""
        mount = self._mount(controller)
        found = self._members.get((pid, mount))
        parent = self._processes.parent(pid)
        return found or (self.group_of(parent, controller) if parent else mount / _HOME)

    def owns(self, path: Path) -> bool:
        """The groups, and the files of /proc that tell of them."""
        return path.is_relative_to(_ROOT) or (path.parts[1] == "proc" and path.name in ("cgroup", "mountinfo"))

    def read(self, path: Path) -> str | None:
        """A control file, or what /proc says."""
        if path.name == "mountinfo":
            return self._mounts()
        if path.name == "cgroup" and path.parts[1] == "proc":
            return self._membership(int(path.parts[2])) if self._processes.identify(int(path.parts[2])) else None
        group = self._group(path.parent)
        if group is None:
            return None
        if path.name == "cgroup.procs":
            return "".join(f"{pid}\n" for pid in self._inside(path.parent))
        if path.name == "cgroup.subtree_control":
            return f"{self.delegated if path.parent == _ROOT else ''}\n"
        return self._counter(path, group)

    def write(self, path: Path, text: str) -> None:
        """A knob, or a process that moves here."""
        group = self._group(path.parent)
        if group is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        if path.name != "cgroup.procs":
            group.knobs[path.name] = text
        elif self._processes.identify(int(text)) is None:
            raise ProcessLookupError(errno.ESRCH, "No such process")
        else:
            self._members[int(text), self._mount_of(path)] = path.parent

    def make_folder(self, path: Path) -> None:
        """A group in another one."""
        self._made.setdefault(path, _Group())

    def remove_folder(self, path: Path) -> bool:
        """Only one without processes goes."""
        if not self._inside(path):
            self._made.pop(path, None)
        return path not in self._made

    def _group(self, folder: Path) -> _Group | None:
        home = any(folder == mount / _HOME[:at] for mount in self._mounted() for at in (0, 5, len(_HOME)))
        return self._made.get(folder) or (_Group() if home else None)

    def _mounted(self) -> tuple[Path, ...]:
        return {1: (_ROOT / "cpu", _ROOT / "memory"), 2: (_ROOT,), None: ()}[self.version]

    def _mount(self, controller: str) -> Path:
        return _ROOT / controller if self.version == 1 else _ROOT

    def _mount_of(self, path: Path) -> Path:
        return next(mount for mount in self._mounted() if path.is_relative_to(mount))

    def _inside(self, folder: Path) -> list[int]:
        controller = self._mount_of(folder).name
        return [pid for pid in self._processes.numbers() if self.group_of(pid, controller) == folder]

    def _mounts(self) -> str:
        if self.version == 2:
            return f"30 23 0:28 / {_ROOT} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
        return "".join(f"30 23 0:28 / {mount} rw - cgroup cgroup rw,{mount.name}\n" for mount in self._mounted())

    def _membership(self, pid: int) -> str:
        if self.version == 2:
            return f"0::/{self.group_of(pid, 'cpu').relative_to(_ROOT)}\n"
        mounts = enumerate(self._mounted(), 1)
        return "".join(f"{n}:{m.name}:/{self.group_of(pid, m.name).relative_to(m)}\n" for n, m in mounts)

    def _counter(self, path: Path, group: _Group) -> str | None:
        limited = bool(group.knobs) and bool(self._inside(path.parent))
        group.hits += limited
        match path.name:
            case "cpu.stat":
                return f"nr_periods {group.hits}\nnr_throttled {group.hits}\n"
            case "memory.max_usage_in_bytes":
                return group.knobs["memory.limit_in_bytes"] if group.hits else "0"
            case "memory.events":
                return f"low 0\nhigh 0\nmax {group.hits}\noom 0\noom_kill 0\n"
            case "memory.oom_control":
                return "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"
            case "memory.memsw.limit_in_bytes" | "memory.swap.max":
                return "max\n"
        return group.knobs.get(path.name)
