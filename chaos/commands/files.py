"""File arguments: experiment files by name or by folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.commands.front import BadInput


def experiment_files(names: Iterable[str]) -> tuple[Path, ...]:
    """The files, each once, folders expanded in sorted order. Raises BadInput."""
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.yaml") if "gamedays" not in p.parts)
            if not inside:
                raise BadInput(f"no experiment (*.yaml) below `{name}`")
            found |= dict.fromkeys(inside)
        elif path.is_file():
            found[path] = None
        else:
            raise BadInput(f"no such file: `{name}`")
    return tuple(found)


def run_directory(name: str) -> Path:
    """A stored run. Raises BadInput."""
    path = Path(name)
    if not (path / "journal.jsonl").is_file():
        raise BadInput(f"`{name}` is not a run directory: it has no journal.jsonl")
    return path
