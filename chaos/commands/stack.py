"""`brownout up`, `down` and `status`: the bundled stack."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
from typing import Any

from chaos.adapters.host import real_host
from chaos.commands.front import BadInput, Front
from chaos.inventory import Inventory
from chaos.paths import state_root
from chaos.ports import Host
from chaos.run.lock import live_holder
from chaos.spec.model import PROFILES
from chaos.stacks.local import OWN_PROXY, PROXY_HELP, LocalStack, StackTrouble, forget, start, stop, wait_ready
from chaos.verdict.outcome import HARNESS_ERROR, UPHELD
from chaos.wiring import faults_in_force, standing_stack, unreadable_leases


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the commands."""
    up = commands.add_parser("up", help="start the bundled stack and wait until it serves")
    up.add_argument("--profile", choices=PROFILES, default=PROFILES[0], help="how the parts are realised")
    up.add_argument("--weakness", action="append", default=[], metavar="NAME", help="plant a known mistake")
    up.add_argument("--proxy", metavar="WHICH", help=PROXY_HELP)
    up.add_argument("--json", action="store_true", help="for programs")
    up.set_defaults(run=_run(_up))
    down = commands.add_parser("down", help="stop the bundled stack")
    down.add_argument("--json", action="store_true", help="for programs")
    down.set_defaults(run=_run(_down))
    status = commands.add_parser("status", help="what is running, what is broken on purpose, and who runs")
    status.add_argument("--json", action="store_true", help="for programs")
    status.set_defaults(run=_run(_status))


def _run(command: Any) -> Any:
    def run(arguments: argparse.Namespace, front: Front) -> int:
        async def main() -> int:
            async with real_host() as host:
                code: int = await command(arguments, front, host, standing_stack(state_root(front.environment)))
                return code

        return asyncio.run(main())

    return run


async def _up(arguments: argparse.Namespace, front: Front, host: Host, stack: LocalStack) -> int:
    inventory = await stack.inventory(host)
    if inventory is not None and inventory.profile != arguments.profile:
        raise BadInput(f"a stack of profile {inventory.profile} is up; take it down first with `brownout down`")
    if inventory is not None and sorted(inventory.weaknesses) != sorted(arguments.weakness):
        there = ", ".join(inventory.weaknesses) or "none"
        raise BadInput(f"a stack is up with other weaknesses ({there}); take it down first with `brownout down`")
    if inventory is not None and arguments.proxy is not None:
        raise BadInput("a stack is up already, with its own proxy; take it down first with `brownout down`")
    if inventory is None or not inventory.ready:
        try:
            began = host.clock.now()
            process = _start(stack, arguments) if inventory is None else None
            inventory = await wait_ready(stack, process, host)
            front.warn(f"the stack is ready after {host.clock.now() - began:.1f}s")
        except StackTrouble as trouble:
            front.warn(f"error: {trouble}")
            return trouble.exit_code
    _tell(arguments, front, inventory)
    return UPHELD


def _start(stack: LocalStack, arguments: argparse.Namespace) -> subprocess.Popen[bytes]:
    proxy = arguments.proxy or OWN_PROXY
    return start(stack, arguments.profile, arguments.weakness, dies_with_us=False, proxy=proxy)


async def _down(arguments: argparse.Namespace, front: Front, host: Host, stack: LocalStack) -> int:
    holder = live_holder(stack.lock, host.processes)
    if holder is not None:
        raise BadInput(f"run {holder.run} is using the stack; end it first with `brownout stop`")
    try:
        was_up = await stop(stack, host)
    except StackTrouble as trouble:
        front.warn(f"error: {trouble}")
        return HARNESS_ERROR
    forget(stack)
    said = "the stack is down" if was_up else "no stack was up"
    front.say_json({"version": 1, "was_up": was_up}) if arguments.json else front.say(said)
    return UPHELD


async def _status(arguments: argparse.Namespace, front: Front, host: Host, stack: LocalStack) -> int:
    state, inventory = state_root(front.environment), await stack.inventory(host)
    harmed, unreadable = faults_in_force(state, host), unreadable_leases(state)
    holder = live_holder(stack.lock, host.processes)
    running = {"id": holder.run, "directory": holder.run_dir, "pid": holder.pid} if holder else None
    if arguments.json:
        record = inventory.to_json() if inventory else {"version": 1, "stack": None, "targets": []}
        front.say_json({**record, "faults_in_force": harmed, "unreadable_leases": unreadable, "run": running})
        return UPHELD
    if inventory is None:
        front.say("no stack is up; start it with `brownout up`")
    else:
        _tell(arguments, front, inventory)
    for fault in harmed:
        front.say(f"in force: {fault['name']} ({fault['kind']}) on {', '.join(fault['targets'])}")
    for lease in unreadable:
        front.say(f"unreadable lease, so something may be broken that nobody can name: {lease}")
    front.say(f"run: {holder.run} (pid {holder.pid})" if holder else "run: none")
    return UPHELD


def _tell(arguments: argparse.Namespace, front: Front, inventory: Inventory) -> None:
    if arguments.json:
        front.say_json(inventory.to_json())
        return
    weak = f", weaknesses: {', '.join(inventory.weaknesses)}" if inventory.weaknesses else ""
    front.say(f"{inventory.stack} (profile {inventory.profile}) {'ready' if inventory.ready else 'not ready'}{weak}")
    for target in inventory.targets:
        pids = " ".join(str(pid) for pid in target.pids) or "-"
        model = f"{target.model} " if target.model else ""
        front.say(f"  {target.name:13} {target.role:16} {target.node or '-':11} {target.address:21} {model}pid {pids}")
