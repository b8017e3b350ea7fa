"""Files in memory: texts that somebody wrote, and paths behind which the in-memory kernel answers."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from chaos.testing.cgroups import FakeGroups
from chaos.testing.kernel import FakeKernel


class InMemoryFiles:
    """The `Files` port. `full` tells of folders whether they have no room."""

    def __init__(self) -> None:
        """No file yet, and no kernel."""
        self.texts: dict[Path, str] = {}
        self.full: dict[Path, Callable[[], bool]] = {}
        self._kernel: FakeKernel | None = None
        self._groups: FakeGroups | None = None

    def show(self, kernel: FakeKernel, groups: FakeGroups) -> None:
        """Let these answer for their paths from now on."""
        self._kernel, self._groups = kernel, groups

    def read(self, path: Path) -> str | None:
        """The text, or None."""
        for view in (self._groups, self._kernel):
            if view and view.owns(path):
                return view.read(path)
        return self.texts.get(path)

    def write_atomic(self, path: Path, text: str) -> None:
        """Keep the text."""
        self.texts[path] = text

    def remove(self, path: Path) -> None:
        """Forget it."""
        self.texts.pop(path, None)

    def names(self, folder: Path) -> tuple[str, ...]:
        """Sorted names of the files directly in a folder."""
        if self._kernel and self._kernel.owns(folder):
            return self._kernel.names(folder)
        return tuple(sorted(path.name for path in self.texts if path.parent == folder))

    def sweep(self, folder: Path, prefix: str) -> None:
        """Writes in memory are never half done."""

    def write_through(self, path: Path, text: str) -> None:
        """Only the groups understand what is written."""
        if self._groups is None or not self._groups.owns(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        self._groups.write(path, text)

    def make_folder(self, path: Path) -> None:
        """A group."""
        if self._groups:
            self._groups.make_folder(path)

    def remove_folder(self, path: Path) -> bool:
        """A group."""
        return self._groups is not None and self._groups.remove_folder(path)

    def trial(self, folder: Path) -> int:
        """As `full` says."""
        return errno.ENOSPC if self.full.get(folder, lambda: False)() else 0
