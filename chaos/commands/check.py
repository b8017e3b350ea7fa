"""`brownout check`: every problem of every file at once."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable

from chaos.adapters.machine import has
from chaos.commands.files import experiment_files, read_file
from chaos.commands.front import Front
from chaos.ports import Need
from chaos.spec.model import Experiment
from chaos.spec.render import render_full, render_github, render_lines, to_json
from chaos.verdict.outcome import BAD_INPUT, UPHELD

_RENDER = {"full": render_full, "line": render_lines, "github": render_github}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    command = commands.add_parser("check", help="validate experiment files; all problems at once")
    command.add_argument("files", nargs="+", metavar="FILE", help="experiment files, or folders of them")
    command.add_argument("--format", choices=[*_RENDER, "json"], default="full", help="how problems are shown")
    command.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace, front: Front) -> int:
    """0 when every file is good, else 64."""
    read = [(path, read_file(path, front)) for path in experiment_files(arguments.files)]
    problems = [problem for _, result in read if not isinstance(result, Experiment) for problem in result]
    if arguments.format == "json":
        front.say_json({"version": 1, "files": len(read), "problems": to_json(problems)})
    elif problems:
        front.warn(_RENDER[arguments.format](problems).rstrip("\n"))
    for note in unread((result for _, result in read if isinstance(result, Experiment)), has):
        front.warn(note)
    if arguments.format == "full":
        bad = sum(not isinstance(result, Experiment) for _, result in read)
        front.say(f"{len(read)} checked, {bad} with problems" if bad else f"{len(read)} checked, no problems")
    return BAD_INPUT if problems else UPHELD


def unread(experiments: Iterable[Experiment], here: Callable[[Need], bool]) -> tuple[str, ...]:
    """What could not be checked on this machine, for want of what reads it: one line a need."""
    wanted = Counter(
        need
        for experiment in experiments
        for hypothesis in experiment.hypotheses
        for need in getattr(hypothesis.measure, "needs", ())
        if not here(need)
    )
    return tuple(
        f"note: {count} hypothes{'is' if count == 1 else 'es'} not checked: {need} is not here; {need.how}"
        for need, count in wanted.items()
    )
