"""`brownout tip`: how long a trigger, or how much load, until the stack no longer comes back by itself."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chaos.commands.files import experiment_files, read_file
from chaos.commands.front import BadInput, Front
from chaos.spec.model import Experiment
from chaos.spec.render import render_full
from chaos.tipping.predict import critical_backlog, critical_load
from chaos.tipping.reading import CannotModel, Scene, Stack, scene_of
from chaos.tipping.search import Arm, Tip, by_control_arm, tipping_length, tipping_load
from chaos.units import Duration, Rate, Ratio, UnitError
from chaos.verdict.document import finite
from chaos.verdict.outcome import BAD_INPUT, UPHELD

T = TypeVar("T", Duration, Rate, Ratio)

_BEFORE_S = 15.0
_WATCH_PATIENCES = 60
_LEAST_WATCH_S = 60.0
_PAST = 1.1
_DEFAULTS = Stack()


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    command = commands.add_parser("tip", help="how long a trigger, or how much load, until the stack stays down")
    command.add_argument("file", metavar="FILE")
    command.add_argument("--of", choices=("length", "load"), default="length", help="what is searched (default length)")
    command.add_argument("--seed", type=int, default=1, help="dice of the check with random arrivals (default 1)")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a value of the file")
    stack = command.add_argument_group("the stack; defaults are those of the bundled one, profile embedded")
    stack.add_argument(
        "--capacity",
        type=_quantity(Rate),
        metavar="RATE",
        help="what all engines serve (default by the length of answers)",
    )
    stack.add_argument("--engines", type=_count, metavar="N", help="engines that share it (default 2)")
    stack.add_argument("--slots", type=_count, metavar="N", help="requests worked on at once (default 32)")
    stack.add_argument("--queue", type=_bound, metavar="N", help="requests that may wait, or `none` (default 64)")
    stack.add_argument(
        "--budget", type=_quantity(Ratio), metavar="SHARE", help="resends per first try (default: no bound)"
    )
    stack.add_argument("--keeps-work", action="store_true", help="goes on with the work of clients that have left")
    stack.add_argument("--cached", type=_quantity(Ratio), metavar="SHARE", help="requests that a warm cache answers")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=run)


def _quantity(unit: type[T]) -> Callable[[str], T]:
    """A value with its unit. The function raises ArgumentTypeError."""

    def read(text: str) -> T:
        try:
            return unit.parse(text)
        except UnitError as error:
            raise argparse.ArgumentTypeError(f"`{text}` is {error}; write for example {error.example}") from error

    return read


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 up")
    return int(text)


def _bound(text: str) -> float:
    return math.inf if text == "none" else float(_count(text))


def run(arguments: argparse.Namespace, front: Front) -> int:
    """0 with the answer, whatever it is; 64 where the model knows no trigger in the file."""
    found = experiment_files([arguments.file])
    if len(found) > 1:
        raise BadInput(f"`{arguments.file}` holds {len(found)} experiments; one file at a time")
    experiment = read_file(found[0], front, tuple(arguments.set))
    if not isinstance(experiment, Experiment):
        front.warn(render_full(experiment).rstrip("\n"))
        return BAD_INPUT
    try:
        scene = scene_of(experiment, _stack(arguments))
    except CannotModel as reason:
        raise BadInput(f"no tipping point for `{arguments.file}`: {reason}") from reason
    if scene.trigger.kind == "flush" and arguments.of == "length":
        raise BadInput("a cache that is emptied has no length; ask for the load: --of load")
    answer = _answer(experiment, scene, arguments.of, arguments.seed)
    front.say_json(_document(answer)) if arguments.json else front.say("\n".join(_page(answer)))
    return UPHELD


def _stack(arguments: argparse.Namespace) -> Stack:
    given = {
        "capacity_per_s": arguments.capacity,
        "engines": arguments.engines,
        "slots": arguments.slots,
        "queue": arguments.queue,
        "budget": arguments.budget,
        "cached": arguments.cached,
    }
    return replace(_DEFAULTS, cancels=not arguments.keeps_work, **{k: v for k, v in given.items() if v is not None})


@dataclass(frozen=True)
class _Answer:
    """All that is told. `chance` is the point with random arrivals, `arms` what became of it with each loop cut."""

    experiment: Experiment
    scene: Scene
    of: str
    seed: int
    tip: Tip
    chance: Tip | None
    arms: tuple[Arm, ...]

    @property
    def written(self) -> float:
        """What the file says of what is searched."""
        return self.scene.trigger.length_s if self.of == "length" else self.scene.system.rate_per_s


def _answer(experiment: Experiment, scene: Scene, of: str, seed: int) -> _Answer:
    """Without dice for the number, with dice to see how far chance moves it, and the arms just beyond it."""
    search = tipping_length if of == "length" else tipping_load
    tip = search(scene.system, scene.trigger, seed)
    if tip.point is None:
        return _Answer(experiment, scene, of, seed, tip, None, ())
    chance = search(replace(scene.system, even=False), scene.trigger, seed)
    beyond = tip.tips * _PAST
    system = scene.system if of == "length" else replace(scene.system, rate_per_s=tip.tips)
    trigger = replace(scene.trigger, length_s=beyond) if of == "length" else scene.trigger
    watch_s = max(_LEAST_WATCH_S, _WATCH_PATIENCES * system.timeout_s)
    arms = by_control_arm(system, trigger, seed, before_s=max(_BEFORE_S, 120 / system.rate_per_s), after_s=watch_s)
    return _Answer(experiment, scene, of, seed, tip, chance, arms)


def _page(answer: _Answer) -> list[str]:
    scene = answer.scene
    head = f"{answer.experiment.name}: a model of the stack in virtual time, {_runs(answer)} runs, seed {answer.seed}"
    lines = [
        head,
        f"  clients     {scene.clients}",
        f"  stack       {scene.stack}",
        f"  trigger     {scene.fault}",
        f"  it tips     {_tips(answer)}",
        f"  as written  {_margin(answer)}",
    ]
    lines += [f"  by chance   {_chance(answer)}"] if answer.chance is not None else []
    lines += [f"  the loop    {_loop(answer.arms)}"] if answer.arms else []
    return [*lines, *(f"  {'to move it' if not i else '':<10}  {text}" for i, text in enumerate(_moves(answer)))]


def _runs(answer: _Answer) -> int:
    return answer.tip.runs + (answer.chance.runs if answer.chance else 0) + len(answer.arms)


def _said(value: float, of: str) -> str:
    return str(Duration(float(f"{value:.3g}")) if of == "length" else Rate(float(f"{value:.3g}")))


def _tips(answer: _Answer) -> str:
    tip, of = answer.tip, answer.of
    if tip.point is None:
        most = (
            f"no trigger of up to {_said(tip.safe, of)}"
            if of == "length"
            else f"no load of up to {_said(tip.safe, of)}"
        )
        return f"never: {most} keeps it down ({_why_never(answer)})"
    closed = "no closed form for such a stack"
    if tip.predicted is not None:
        name = "the closed form says" if of == "length" else "for a trigger without end the closed form says"
        closed = f"{name} {_said(tip.predicted, of)}" if math.isfinite(tip.predicted) else f"{name} never"
    bounds = f"comes back after {_said(tip.safe, of)}, not after {_said(tip.tips, of)}"
    return f"at {_said(tip.point, of)} ({bounds}; {closed})"


def _why_never(answer: _Answer) -> str:
    system, trigger = answer.scene.system, answer.scene.trigger
    if system.cancels:
        return "no work is done for clients that have left"
    if trigger.kind == "capacity" and system.rate_per_s <= trigger.factor * system.capacity_per_s:
        return "what is left of capacity carries the load"
    if system.attempts == 1 and system.cache is None:
        return "nobody resends, so the line always drains"
    if system.queue <= critical_backlog(system.capacity_per_s, system.clients, system.slots):
        return "the line is so short that whoever leaves it is still waited for"
    if system.cache is not None:
        return "the cache fills again before the line is too long"
    return f"it takes more than {Ratio(round(critical_load(system.clients), 3))} of capacity"


def _margin(answer: _Answer) -> str:
    written, point = answer.written, answer.tip.point
    if point is None:
        return f"{_said(written, answer.of)}: safe"
    if written < answer.tip.tips:
        return f"{_said(written, answer.of)}: {point / written:.1f} times less than what tips it"
    return f"{_said(written, answer.of)}: IT TIPS, {written / point:.1f} times what is enough"


def _chance(answer: _Answer) -> str:
    chance = answer.chance
    if chance is None or chance.point is None:
        return "with random arrivals it did not tip"
    return f"with random arrivals at {_said(chance.point, answer.of)}"


def _loop(arms: tuple[Arm, ...]) -> str:
    cured = [arm for arm in arms if arm.found.state == "recovered"]
    if not cured:
        return "no single cut cures it: " + ", ".join(f"without {arm.loop} {arm.found.state}" for arm in arms)
    first, *others = cured
    took = f"in {Duration(first.found.took_s)}" if first.found.took_s else "at once"
    also = f" (so does cutting {', '.join(arm.loop for arm in others)})" if others else ""
    return f"{first.loop}: with it cut, the same run recovers {took}{also}"


def _moves(answer: _Answer) -> list[str]:
    """What theory says would move the point, each only where it is not there already."""
    system, moves = answer.scene.system, []
    if answer.tip.point is None:
        return []
    roomy = critical_backlog(system.capacity_per_s, system.clients, system.slots)
    if system.queue > roomy:
        moves.append(
            f"a line of at most {math.floor(roomy)} (capacity times patience, less what is worked on): never tips"
        )
    if not system.cancels:
        moves.append("ending the work of clients that have left: never tips")
    if system.attempts > 1 and (system.budget is None or system.budget.ratio > 0.1):
        now, then = critical_load(system.clients), 1 / 1.1
        moves.append(f"resends at most 10% of first tries: tips only above {then:.0%} of capacity, now above {now:.0%}")
    return moves


def _document(answer: _Answer) -> dict[str, Any]:
    tip, scene = answer.tip, answer.scene
    return {
        "version": 1,
        "experiment": answer.experiment.name,
        "of": answer.of,
        "unit": "s" if answer.of == "length" else "/s",
        "written": answer.written,
        "tips_at": tip.point,
        "bracket": [tip.safe, finite(tip.tips)],
        "predicted": finite(tip.predicted),
        "with_random_arrivals": None if answer.chance is None else answer.chance.point,
        "seed": answer.seed,
        "runs": _runs(answer),
        "assumed": {"clients": scene.clients, "stack": scene.stack, "trigger": scene.fault},
        "arms": [{"cut": arm.loop, "state": arm.found.state, "took_s": arm.found.took_s} for arm in answer.arms],
        "to_move_it": _moves(answer),
    }
