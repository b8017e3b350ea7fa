"""What `brownout run` adds for a series: its order, what a person sees of it, and going on where one was left."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.commands.front import BadInput, Front
from chaos.plan.plan import Plan
from chaos.progress import Progress
from chaos.report.summary import block
from chaos.series.document import NotASeries
from chaos.series.order import Entry, Order, Series
from chaos.series.shelf import EXPERIMENT_FILE, load
from chaos.series.told import run_line
from chaos.spec.model import Experiment

_USUAL: Mapping[str, Any] = {
    "seed": 1,
    "profile": None,
    "weakness": [],
    "set": [],
    "keep": "all",
    "repeat": 1,
    "until_refuted": None,
}
"""What a series decides at its beginning, as it is when nobody says anything: half of it with others would be none."""


def add(command: argparse.ArgumentParser) -> None:
    """The options of a series."""
    times = command.add_mutually_exclusive_group()
    times.add_argument(
        "--repeat", type=_at_least_once, default=1, metavar="N", help="run each N times with derived seeds, and pool"
    )
    times.add_argument(
        "--until-refuted", type=_at_least_once, metavar="MAX", help="repeat each until a run is refuted, MAX at most"
    )
    command.add_argument("--resume", metavar="SERIES_DIR", help="make the runs that a series still lacks")
    command.add_argument(
        "--keep", choices=("all", "refuted"), default="all", help="refuted: of upheld runs keep only verdict.json"
    )


def _at_least_once(text: str) -> int:
    """No run at all would be upheld by nothing. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 up")
    return int(text)


def asked(arguments: argparse.Namespace) -> bool:
    """Whether a series is wanted, not single runs. Raises BadInput."""
    wanted = arguments.repeat > 1 or arguments.until_refuted is not None or arguments.resume is not None
    if arguments.keep != "all" and not wanted:
        raise BadInput("`--keep refuted` is for a series: add `--repeat N` or `--until-refuted MAX`")
    return wanted


def order_for(arguments: argparse.Namespace, experiment: Experiment) -> Order:
    """What is asked of one experiment."""
    return Order(
        experiment=experiment.name,
        title=experiment.title,
        path=experiment.path,
        seed=arguments.seed,
        most=arguments.until_refuted or arguments.repeat,
        hunt=arguments.until_refuted is not None,
        keep=arguments.keep,
        profile=arguments.profile or experiment.profile,
        weaknesses=tuple(arguments.weakness),
        set_=tuple(arguments.set),
    )


def stored(name: str) -> Series:
    """A series to go on with. Raises BadInput."""
    try:
        return load(Path(name))
    except NotASeries as reason:
        raise BadInput(f"`{name}` cannot be resumed: {reason}") from reason


def as_it_was(arguments: argparse.Namespace) -> argparse.Namespace:
    """The options with which the series began. A file may be named anew, for when it is called from elsewhere. Raises
    BadInput.
    """
    order = stored(arguments.resume).order
    changed = [f"--{name.replace('_', '-')}" for name in _USUAL if getattr(arguments, name) != _USUAL[name]]
    if changed or len(arguments.files) > 1:
        raise BadInput(f"a series is resumed as it began: leave out {', '.join(changed) or 'all files but its own'}")
    was = {
        "files": arguments.files or [order.path],
        "seed": order.seed,
        "profile": order.profile or None,
        "weakness": list(order.weaknesses),
        "set": list(order.set_),
        "keep": order.keep,
        "repeat": 1 if order.hunt else order.most,
        "until_refuted": order.most if order.hunt else None,
    }
    return argparse.Namespace(**{**vars(arguments), **was})


def must_be_the_same(folder: Path, experiment: Experiment) -> None:
    """A series is one experiment. Raises BadInput when its file is another by now."""
    try:
        began_with = (folder / EXPERIMENT_FILE).read_text(encoding="utf-8")
    except OSError as reason:
        raise BadInput(f"`{folder}` cannot be resumed: {reason}") from reason
    if began_with != experiment.text:
        raise BadInput(
            f"`{experiment.path}` is not the experiment that `{folder}` began with; begin a new series, or name the "
            "file as it was"
        )


@dataclass(frozen=True)
class Told:
    """Shows the runs of a series as they come and go. `progress` makes the live view of one."""

    front: Front
    json: bool
    progress: Callable[[Plan], Progress]

    def show(self, plan: Plan) -> Progress:
        """Each run is watched like a single one."""
        return self.progress(plan)

    def done(self, series: Series, entry: Entry) -> None:
        """One line a run, and all about the first refuted one; where programs read, it goes where progress goes."""
        say = self.front.warn if self.json else self.front.say
        say(run_line(series, entry))
        if entry == series.first_refuted:
            say(block(entry.verdict))
