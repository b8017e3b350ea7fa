"""`brownout compare`: stored runs and series side by side, and which of their differences are real."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from chaos.commands.files import run_directory
from chaos.commands.front import BadInput, Front
from chaos.comparing.differ import differences, regressed
from chaos.comparing.document import to_json
from chaos.comparing.page import to_markdown
from chaos.comparing.side import Side, side_of_run, side_of_series
from chaos.report.facts import FELT_COLUMNS, felt, gather
from chaos.series.document import NotASeries
from chaos.series.shelf import EXPERIMENT_FILE, is_series, load
from chaos.verdict.outcome import REFUTED, UPHELD
from chaos.writeup import NotARun, judged

_DURING = FELT_COLUMNS.index("during")
_NOT_COMPARED = ("window", "requests")
"""Rows of the report's table that say when, not how it was."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    command = commands.add_parser("compare", help="runs or series side by side: what differs, and what is real of it")
    command.add_argument("dirs", nargs="+", metavar="DIR", help="run or series directories, the oldest first")
    command.add_argument("--anyway", action="store_true", help="also when they are not of one experiment")
    command.add_argument(
        "--fail-on-regression", action="store_true", help="exit with 1 when the last is worse than the first for real"
    )
    command.add_argument("--json", action="store_true", help="print the comparison for programs")
    command.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace, front: Front) -> int:
    """0, or 1 for a regression where that is asked for."""
    if len(arguments.dirs) < 2:
        raise BadInput("name at least two run or series directories to compare")
    sides = [_side(name) for name in arguments.dirs]
    names = dict.fromkeys(side.experiment for side in sides)
    if len(names) > 1 and not arguments.anyway:
        raise BadInput(f"these are different experiments ({', '.join(names)}); `--anyway` compares them all the same")
    warnings = tuple(_warnings(sides))
    if arguments.json:
        front.say_json(to_json(sides, warnings))
    else:
        front.say(to_markdown(sides, warnings).rstrip("\n"))
    worse = regressed(differences(sides[0], sides[-1]))
    return REFUTED if worse and arguments.fail_on_regression else UPHELD


def _side(name: str) -> Side:
    """Raises BadInput."""
    try:
        return _of_series(Path(name)) if is_series(Path(name)) else _of_run(run_directory(name))
    except (NotARun, NotASeries, OSError) as reason:
        raise BadInput(f"`{name}` cannot be compared: {reason}") from reason


def _of_run(run_dir: Path) -> Side:
    experiment, evidence, verdict = judged(run_dir)
    table = felt(gather(experiment, evidence, verdict, run_dir))
    during = {row[0]: row[_DURING] for row in table if row[0] not in _NOT_COMPARED}
    return side_of_run(str(run_dir), verdict, experiment.text, _environment(run_dir), during)


def _of_series(folder: Path) -> Side:
    series = load(folder)
    whole = next((folder / entry.folder for entry in series.entries if entry.whole), folder)
    return side_of_series(str(folder), series, (folder / EXPERIMENT_FILE).read_text("utf-8"), _environment(whole))


def _environment(run_dir: Path) -> dict[str, Any]:
    """What it ran on; nothing where that was not kept."""
    try:
        facts = json.loads((run_dir / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _warnings(sides: Sequence[Side]) -> Iterator[str]:
    """What makes the sides less alike than they look."""
    if len({side.experiment for side in sides}) > 1:
        yield "these are different experiments"
    if len({side.text for side in sides}) > 1:
        yield "the experiment files differ: hypotheses of one name may not ask the same"
    elif len({side.fingerprint for side in sides}) > 1:
        yield "the plans differ (fingerprints): another seed, other targets, or another profile"
    if len({side.kind for side in sides}) > 1:
        yield "a run is held against a series: the interval of the run does not know how much runs differ"
