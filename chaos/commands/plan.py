"""`brownout plan`: what would happen to whom and when. Touches nothing."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from chaos.adapters.host import real_host
from chaos.commands.files import experiment_files, read_file
from chaos.commands.front import BadInput, Front
from chaos.inventory import Inventory
from chaos.paths import state_root
from chaos.plan.make import to_json
from chaos.plan.plan import Plan
from chaos.plan.render import render
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.model import Experiment
from chaos.spec.render import render_full
from chaos.spec.render import to_json as problems_json
from chaos.verdict.outcome import BAD_INPUT, UPHELD
from chaos.wiring import planned, standing_stack


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    command = commands.add_parser("plan", help="what would happen to whom and when; touches nothing")
    command.add_argument("file", metavar="FILE")
    command.add_argument("--seed", type=int, default=1, help="draws the targets and the arrivals (default 1)")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a value of the file")
    command.add_argument("--inventory", metavar="FILE", help="plan against this inventory, not the stack that is up")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace, front: Front) -> int:
    """0 with the plan, 64 with every reason why there is none."""
    found = experiment_files([arguments.file])
    if len(found) > 1:
        raise BadInput(f"`{arguments.file}` holds {len(found)} experiments; a plan is made for one file at a time")
    read = read_file(found[0], front, tuple(arguments.set))
    plan: Plan | tuple[Diagnostic, ...]
    if isinstance(read, Experiment):
        plan = planned(read, _inventory(arguments.inventory, front), arguments.seed)
    else:
        plan = read
    if isinstance(plan, Plan):
        front.say_json(to_json(plan)) if arguments.json else front.say(render(plan).rstrip("\n"))
        return UPHELD
    if arguments.json:
        front.say_json({"version": 1, "problems": problems_json(plan)})
    else:
        front.warn(render_full(plan).rstrip("\n"))
    return BAD_INPUT


def _inventory(file: str | None, front: Front) -> Inventory:
    if file is not None:
        try:
            return Inventory.from_json(json.loads(Path(file).read_text()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"`{file}` is not an inventory: {error}") from error
    found = asyncio.run(_running(front))
    if found is None:
        raise BadInput("no stack is up; start it with `brownout up`, or name an inventory with --inventory")
    return found


async def _running(front: Front) -> Inventory | None:
    async with real_host() as host:
        return await standing_stack(state_root(front.environment)).inventory(host)
