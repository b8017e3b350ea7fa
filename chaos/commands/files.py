"""File arguments: experiment files by name or by folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.commands.front import BadInput, Front
from chaos.paths import is_experiment_file, shown
from chaos.series.shelf import PAGE_FILE, is_series
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.model import Experiment
from chaos.wiring import read_experiment


def experiment_files(names: Iterable[str]) -> tuple[Path, ...]:
    """The files, each once, folders expanded in sorted order. Raises BadInput."""
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.y*ml") if is_experiment_file(p) and "gamedays" not in p.parts)
            if not inside:
                raise BadInput(f"no experiment (*.yaml, *.yml) below `{name}`")
            found |= dict.fromkeys(inside)
        elif path.is_file():
            found[path] = None
        else:
            raise BadInput(f"no such file: `{name}`")
    return tuple(found)


def read_file(path: Path, front: Front, overrides: tuple[str, ...] = ()) -> Experiment | tuple[Diagnostic, ...]:
    """An experiment file, checked, or all that is wrong with it. Raises BadInput when it cannot be read at all."""
    try:
        return read_experiment(path, front.here, overrides)
    except OSError as problem:
        raise BadInput(f"`{shown(path, front.here)}` cannot be read: {problem.strerror}") from problem


def run_directory(name: str) -> Path:
    """A stored run. Raises BadInput."""
    path = Path(name)
    if is_series(path):
        raise BadInput(f"`{name}` is a series of runs: read its {PAGE_FILE}, or name one of the runs inside")
    if not (path / "journal.jsonl").is_file():
        raise BadInput(f"`{name}` is not a run directory: it has no journal.jsonl")
    return path
