"""Where the harness keeps what must outlive it, leases and the state of stacks, and what is an experiment's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def state_root(environment: Mapping[str, str]) -> Path:
    """`$BROWNOUT_STATE`, else `brownout` below the XDG state folder."""
    if environment.get("BROWNOUT_STATE"):
        return Path(environment["BROWNOUT_STATE"]).absolute()
    base = environment.get("XDG_STATE_HOME") or str(
        Path(environment.get("HOME", "~")).expanduser() / ".local" / "state"
    )
    return Path(base).absolute() / "brownout"


def project_root(near: Path) -> Path | None:
    """The project of an experiment file: what holds its `experiments` folder, else what holds `fixtures/prompts`."""
    above = near.absolute().parents
    named = (folder.parent for folder in above if folder.name == "experiments")
    holding = (folder for folder in above if (folder / "fixtures" / "prompts").is_dir())
    return next(named, None) or next(holding, None)


def is_experiment_file(path: Path) -> bool:
    """Whether it is a file with a name of YAML; what is in it is another question."""
    return path.suffix in (".yaml", ".yml") and path.is_file()


def shown(path: Path, here: Path) -> str:
    """The path as people type it from `here`."""
    absolute = path.absolute()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
