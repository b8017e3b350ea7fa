"""The command line: arguments in, text out, an exit code back. The only place that prints and exits.

Exit codes: 0 upheld, 1 refuted, 2 inconclusive, 3 stopped, 4 something could not be reverted, 64 bad input, 70 error in
the harness itself.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from chaos.commands.front import BadInput, Front
from chaos.verdict.outcome import BAD_INPUT, HARNESS_ERROR, STOPPED


class _Parser(argparse.ArgumentParser):
    """Wrong usage is bad input: 64, not argparse's 2, which means inconclusive here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(BAD_INPUT, f"error: {message}\n")


_COMMANDS = {
    "stack": ("up", "down", "status"),
    "check": ("check",),
    "plan": ("plan",),
    "run": ("run",),
    "judge": ("judge", "report"),
    "compare": ("compare",),
    "tip": ("tip",),
    "export": ("export",),
    "recover": ("recover", "stop"),
    "catalogs": ("faults", "probes", "measures", "weaknesses", "explain", "schema", "version"),
    "proxy": ("proxy",),
}
"""Module below chaos.commands to the commands it adds, in the order of the help."""


def parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """Every command with its options, or only what the module of the command `wanted` adds.

    A command imports what it needs: `check` must not pay for the load driver, nor `version` for numpy.
    """
    top = _Parser(prog="brownout", description="Chaos engineering for LLM and GPU serving stacks.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    homes = [module for module, names in _COMMANDS.items() if wanted in names] or list(_COMMANDS)
    for module in homes:
        importlib.import_module(f"chaos.commands.{module}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    front = Front(
        say=lambda text: _print(text, sys.stdout),
        warn=lambda text: _print(text, sys.stderr),
        environment=dict(os.environ),
        here=Path.cwd(),
        terminal=sys.stderr.isatty(),
    )
    given = list(sys.argv[1:] if argv is None else argv)
    arguments = parser(given[0] if given else None).parse_args(given)
    try:
        return int(arguments.run(arguments, front))
    except BadInput as problem:
        front.warn(f"error: {problem}")
        return BAD_INPUT
    except KeyboardInterrupt:
        return STOPPED
    except Exception:  # noqa: BLE001  the last resort: a person gets a sentence, the traceback goes to a file
        front.warn(_harness_error(traceback.format_exc()))
        return HARNESS_ERROR


def _print(text: str, stream: TextIO) -> None:
    """A reader that has left hears nothing more; it changes neither what is done nor the exit code."""
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _harness_error(trace: str) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="brownout-error-", suffix=".txt", delete=False) as file:
        file.write(trace)
    last = trace.strip().splitlines()[-1]
    return f"error in brownout itself: {last}\nDetails: {file.name}. `brownout recover` reverts what may be left."
