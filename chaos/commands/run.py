"""`brownout run`: experiments on the stack that is up, or on one of their own that goes away with them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from chaos.adapters.host import real_host
from chaos.attempt import Place, Ran, plan_now, run_one, stopped_by_signals, written_up
from chaos.commands import repeated
from chaos.commands.files import experiment_files, read_file
from chaos.commands.front import BadInput, Front
from chaos.controls import new_arm, overrides_for
from chaos.live.page import LivePage
from chaos.live.server import CannotListen, watched
from chaos.paths import shown, state_root
from chaos.plan.plan import Plan
from chaos.progress import Lines, Overheard, Panel, Progress
from chaos.repeating import Carried, Repeating, new_series, speaks_for
from chaos.report.summary import block, one_line
from chaos.run.stop import Stop
from chaos.series.document import to_json as series_json
from chaos.series.pool import pool
from chaos.series.told import block as series_block
from chaos.series.told import one_line as one_series
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.model import PROFILES, Experiment
from chaos.spec.render import render_full
from chaos.stacks.lending import Kind, lend
from chaos.stacks.local import PROXY_HELP, StackTrouble
from chaos.verdict.document import to_json
from chaos.verdict.outcome import BAD_INPUT, INCONCLUSIVE, REFUTED, STOPPED, UPHELD, Verdict, worst
from chaos.wiring import standing_stack
from chaos.writeup import refresh_runbook

_ARM_HELP = "run it once more with a loop cut, to prove what keeps the stack down: `retries`, or KEY=VALUE of the file"

_STOP_HELP = "end a run as soon as all faults are over and nothing to come can change that it is refuted"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    command = commands.add_parser("run", help="attack, prove, judge, write up")
    command.add_argument("files", nargs="*", metavar="FILE", help="experiment files, or folders of them")
    command.add_argument("--profile", choices=PROFILES, help="run all on this stack, whatever the files are made for")
    command.add_argument("--seed", type=int, default=1, help="draws targets and arrivals (default 1)")
    command.add_argument("--out", default="runs", metavar="DIR", help="folder of run directories (default runs)")
    command.add_argument("--weakness", action="append", default=[], metavar="NAME", help="plant a known mistake")
    command.add_argument("--proxy", metavar="WHICH", help=PROXY_HELP)
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a value of the file")
    repeated.add(command)
    command.add_argument("--stop-when-refuted", action="store_true", help=_STOP_HELP)
    command.add_argument("--control-arm", action="append", default=[], metavar="CUT", help=_ARM_HELP)
    command.add_argument("--no-runbook", action="store_true", help="leave the marked block of the runbook as it is")
    command.add_argument("--metrics", metavar="HOST:PORT", help="serve /metrics and /annotations while runs go on")
    command.add_argument("--metrics-token-file", metavar="F", help="ask for its content there (made if missing)")
    command.add_argument("--json", action="store_true", help="print verdict.json of each run")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace, front: Front) -> int:
    """The worst exit code of all runs."""
    in_series = repeated.asked(arguments)
    if in_series and arguments.control_arm:
        raise BadInput("a series has no control arms: run one of its seeds with --control-arm")
    arguments = repeated.as_it_was(arguments) if arguments.resume else arguments
    if arguments.stop_when_refuted and (arguments.control_arm or arguments.repeat > 1):
        raise BadInput(
            "control arms are held against whole runs, and only whole runs are pooled: leave out --stop-when-refuted"
        )
    if not arguments.files:
        raise BadInput("name an experiment file, or a series to go on with: `--resume SERIES_DIR`")
    experiments, problems = _read(arguments, front)
    if problems:
        front.warn(render_full(problems).rstrip("\n"))
        return BAD_INPUT
    for _, experiment in experiments if arguments.resume else ():
        repeated.must_be_the_same(Path(arguments.resume), experiment)
    session = (_SeriesSession if in_series else _Session)(arguments, front, experiments)
    try:
        return asyncio.run(session.run())
    except CannotListen as reason:
        raise BadInput(str(reason)) from reason


def _read(arguments: argparse.Namespace, front: Front) -> tuple[list[tuple[Path, Experiment]], list[Diagnostic]]:
    """All files are checked before anything is started."""
    good: list[tuple[Path, Experiment]] = []
    problems: list[Diagnostic] = []
    for path in experiment_files(arguments.files):
        read = read_file(path, front, tuple(arguments.set))
        if not isinstance(read, Experiment):
            problems += read
            continue
        good.append((path, read))
        for _, changed in _arms(arguments, path, front):
            problems += () if isinstance(changed, Experiment) else changed
    return good, problems


def _arms(
    arguments: argparse.Namespace, path: Path, front: Front
) -> Iterator[tuple[str, Experiment | tuple[Diagnostic, ...]]]:
    """Each control arm with the experiment that it runs, or what is wrong with its cut."""
    read = read_file(path, front, tuple(arguments.set))
    if not isinstance(read, Experiment):
        return
    for cut in arguments.control_arm:
        yield cut, read_file(path, front, (*arguments.set, *overrides_for(cut, read)))


@dataclass
class _Session:
    """One invocation: a stack, and the runs on it one after the other. `lines` sum it up when there were several,
    `page` is what others may read meanwhile.
    """

    arguments: argparse.Namespace
    front: Front
    experiments: list[tuple[Path, Experiment]]
    lines: list[str] = field(default_factory=list)
    page: LivePage | None = None

    async def run(self) -> int:
        stop, state = Stop(), state_root(self.front.environment)
        codes: list[int] = []
        listen, token_file = self.arguments.metrics, self.arguments.metrics_token_file
        async with (
            real_host() as host,
            stopped_by_signals(stop, self.front.warn),
            watched(listen, token_file, host.clock, self.front.warn) as self.page,
        ):
            for profile, experiments in self._by_profile().items():
                kind, proxy = Kind(profile, tuple(self.arguments.weakness)), self.arguments.proxy
                try:
                    async with lend(standing_stack(state), state, kind, host, stop.wait, proxy=proxy) as lent:
                        self.front.warn(lent.said)
                        early = self.arguments.stop_when_refuted
                        place = Place(lent.stack, host, Path(self.arguments.out), state, early)
                        await self._all(experiments, place, stop, codes)
                except StackTrouble as trouble:
                    self.front.warn(f"error: {trouble}")
                    codes.append(STOPPED if stop.requested() and not codes else trouble.exit_code)
        if len(self.lines) > 1 and not self.arguments.json:
            self.front.say("\n".join(self.lines))
        return worst(codes)

    def _by_profile(self) -> dict[str, list[tuple[Path, Experiment]]]:
        """Files that need the same stack share it."""
        groups: dict[str, list[tuple[Path, Experiment]]] = {}
        for path, experiment in self.experiments:
            groups.setdefault(self.arguments.profile or experiment.profile, []).append((path, experiment))
        return groups

    async def _all(
        self, experiments: list[tuple[Path, Experiment]], place: Place, stop: Stop, codes: list[int]
    ) -> None:
        """One after the other, each with a stop of its own: a guard ends its run, a signal ends them all."""
        for path, experiment in experiments:
            if stop.requested():
                codes.append(STOPPED)
                break
            codes.append(await self._one(path, experiment, place, stop.part()))

    async def _one(self, path: Path, experiment: Experiment, place: Place, stop: Stop) -> int:
        planned = await plan_now(experiment, self.arguments.seed, place)
        if isinstance(planned, Ran):
            self.front.warn(planned.trouble or "")
            return planned.exit_code
        with self._progress(planned[0]) as progress:
            ran = await run_one(*planned, stop, progress.tell)
        if ran.trouble:
            self.front.warn(ran.trouble)
        if self.arguments.control_arm:
            ran = await self._held_against_arms(path, place, stop, ran)
        if ran.verdict and ran.run_dir:
            self._show(ran.verdict, ran.run_dir)
            self._refresh(path, experiment, ran.verdict, place)
        return ran.exit_code

    async def _held_against_arms(self, path: Path, place: Place, stop: Stop, ran: Ran) -> Ran:
        """The same plan once for each arm, in the directory of the run; what they show goes into its reports."""
        codes, run_dir = [ran.exit_code], ran.run_dir
        if run_dir is None:
            return ran
        for cut, changed in _arms(self.arguments, path, self.front):
            if stop.requested() or not isinstance(changed, Experiment):
                break  # what is wrong with a cut was said before the first run began
            planned = await plan_now(changed, self.arguments.seed, replace(place, out=new_arm(run_dir, cut)))
            if isinstance(planned, Ran):
                self.front.warn(planned.trouble or "")
                codes.append(planned.exit_code)
                continue
            with self._progress(planned[0]) as progress:
                arm = await run_one(*planned, stop.part(), progress.tell)
            # Users of an arm may fare as they like; that it was carried out and taken back is what counts.
            codes += [arm.exit_code] if arm.exit_code not in (UPHELD, REFUTED, INCONCLUSIVE) else []
        return written_up(run_dir, worst(codes))

    def _show(self, verdict: Verdict, run_dir: Path) -> None:
        self.lines.append(one_line(verdict))
        if self.arguments.json:
            self.front.say_json(to_json(verdict))
        else:
            self.front.say(block(verdict, shown(run_dir / "report.md", self.front.here)) + "\n")

    def _refresh(self, path: Path, experiment: Experiment, verdict: Verdict, place: Place) -> None:
        if self.arguments.no_runbook:
            return
        today = datetime.fromtimestamp(place.host.clock.wall(), UTC).date().isoformat()
        trouble = refresh_runbook(path, experiment, verdict, today)
        if trouble:
            self.front.warn(trouble)

    def _progress(self, plan: Plan) -> Progress:
        self.front.warn(f"== {plan.experiment.title}  ({plan.experiment.name}, seed {plan.seed})")
        panel = self.front.terminal and not self.arguments.json
        progress = (
            Panel(plan.experiment.title, plan.load_end, Console(stderr=True)) if panel else Lines(self.front.warn)
        )
        return Overheard(progress, self.page.follow(plan)) if self.page else progress


@dataclass
class _SeriesSession(_Session):
    """An invocation that makes a series of each experiment."""

    async def _one(self, path: Path, experiment: Experiment, place: Place, stop: Stop) -> int:
        if self.arguments.resume:
            series, folder = repeated.stored(self.arguments.resume), Path(self.arguments.resume)
        else:
            series, folder = new_series(repeated.order_for(self.arguments, experiment), place)
        watcher = repeated.Told(self.front, self.arguments.json, self._progress)
        carried = await Repeating(experiment, folder, place, stop, watcher).run(series)
        if carried.trouble:
            self.front.warn(carried.trouble)
        self._show_series(carried)
        if spokesman := speaks_for(carried.series):
            self._refresh(path, experiment, spokesman, place)
        return carried.exit_code

    def _show_series(self, carried: Carried) -> None:
        self.lines.append(one_series(carried.series))
        if self.arguments.json:
            self.front.say_json(series_json(carried.series))
        else:
            page = shown(carried.page, self.front.here)
            self.front.say(series_block(carried.series, pool(carried.series), page) + "\n")
