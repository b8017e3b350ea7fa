"""`brownout proxy`: the fault proxy alone, a drop-in for toxiproxy-server."""

from __future__ import annotations

import argparse

from chaos.commands.front import Front
from chaos.proxy.command import main


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    command = commands.add_parser("proxy", help="the fault proxy alone: a drop-in for toxiproxy-server", add_help=False)
    command.add_argument("rest", nargs=argparse.REMAINDER)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace, front: Front) -> int:  # noqa: ARG001  every command has this shape
    """Serve until told to end."""
    return main(arguments.rest)
