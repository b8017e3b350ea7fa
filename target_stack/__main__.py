"""`python -m target_stack`: run the bundled stack in the foreground until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from target_stack.bundled import Order, run_bundled
from target_stack.cache.server import NoValkey
from target_stack.children import NurseryGone
from target_stack.config import PROFILES, BadTopology, load_topology, with_chosen_embedder
from target_stack.control import SocketPathTooLong
from target_stack.disks import separate
from target_stack.nursery import open_nursery
from target_stack.port_numbers import NoFreePort
from target_stack.process import end_with_parent, set_title
from target_stack.supervisor import CannotStart
from target_stack.vector_store.accounts import NoAccount, unprivileged
from target_stack.vector_store.cluster import NoPostgres
from target_stack.weaknesses import WEAKNESSES, UnknownWeakness, find_weaknesses
from target_stack.workspace import Occupied, open_workspace

_FAILED, _BAD_INPUT = 1, 64
_TROUBLE = (CannotStart, NurseryGone, NoAccount, NoFreePort, NoPostgres, NoValkey, Occupied, SocketPathTooLong, OSError)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_BAD_INPUT, f"{self.format_usage()}{self.prog}: {message}\n")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as values; ends the process with 64 when it makes no sense."""
    parser = _Parser(prog="python -m target_stack", description="Run the bundled stack until SIGTERM.")
    parser.add_argument("--state-dir", type=Path, help="folder for the inventory, the control socket and the logs")
    parser.add_argument("--profile", choices=PROFILES, default=PROFILES[0], help="how the parts are realised")
    parser.add_argument("--weakness", action="append", default=[], metavar="NAME", help="plant a mistake; repeatable")
    parser.add_argument(
        "--proxy-command", help="program that speaks Toxiproxy's HTTP contract; {port} is its admin port"
    )
    parser.add_argument("--proxy-at", metavar="HOST:PORT", help="admin address of a running proxy of that contract")
    parser.add_argument("--die-with", type=int, metavar="PID", help="end when this process, our parent, ends")
    parser.add_argument(
        "--list-weaknesses", action="store_true", help="print the mistakes that can be planted, as JSON"
    )
    values = parser.parse_args(arguments)
    if values.state_dir is None and not values.list_weaknesses:
        parser.error("--state-dir is missing")
    return values


def weaknesses_json() -> str:
    """The catalogue for other programs."""
    records = [{"name": w.name, "summary": w.summary, "component": w.component} for w in WEAKNESSES]
    return json.dumps(records, indent=1) + "\n"


def run(order: Order, state_dir: Path) -> None:
    """Run until asked to stop, and leave nothing but logs. Raises what `_TROUBLE` lists."""
    workspace = open_workspace(state_dir.absolute(), order.account)
    try:
        for disk in order.disks if separate() else ():
            workspace.add_disk(*disk)
        nursery, line = open_nursery()
        try:
            set_title("supervisor")
            asyncio.run(run_bundled(order, workspace, line))
        finally:
            line.close()
            os.waitpid(nursery, 0)
    finally:
        workspace.close()


def main(arguments: Sequence[str]) -> int:
    """0 after an orderly end, 1 when the stack could not start, 64 for arguments that make no sense."""
    values = parse_arguments(arguments)
    if values.list_weaknesses:
        sys.stdout.write(weaknesses_json())
        return 0
    try:
        weaknesses, topology = find_weaknesses(values.weakness), with_chosen_embedder(load_topology(values.profile))
    except (UnknownWeakness, BadTopology) as problem:
        sys.stderr.write(f"{problem}\n")
        return _BAD_INPUT
    try:
        if values.die_with is not None:
            end_with_parent(values.die_with)
        account = unprivileged(os.geteuid())
        run(Order(topology, weaknesses, values.proxy_command, account, values.proxy_at), values.state_dir)
    except _TROUBLE as problem:
        sys.stderr.write(f"the stack ended: {problem}\n")
        return _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
