"""`brownout proxy`: the fault proxy alone, a drop-in for toxiproxy-server."""

from __future__ import annotations

import argparse

from chaos.commands.front import Front
from chaos.proxy import command as proxy


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    command = commands.add_parser("proxy", help="the fault proxy alone: a drop-in for toxiproxy-server")
    proxy.add_flags(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace, front: Front) -> int:  # noqa: ARG001  every command has this shape
    """Serve until told to end."""
    return proxy.run(proxy.options_of(arguments))
