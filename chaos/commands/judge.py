"""`brownout judge` and `brownout report`: stored evidence, judged and written up again."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from chaos.commands.files import run_directory
from chaos.commands.front import BadInput, Front
from chaos.report.facts import Facts, gather
from chaos.report.otlp import to_lines
from chaos.report.otlp_metrics import metrics_document
from chaos.report.otlp_trace import trace_document
from chaos.report.prometheus import to_prometheus
from chaos.report.summary import block
from chaos.verdict.document import to_json
from chaos.verdict.outcome import UPHELD
from chaos.writeup import NotARun, judged, write_up

_FILES = {"md": "report.md", "html": "report.html", "junit": "junit.xml", "json": "verdict.json"}
_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    "prometheus": to_prometheus,
    "otlp": lambda facts: to_lines(trace_document(facts), metrics_document(facts)),
}
"""Forms that other programs collect; they are printed and not kept in the run directory."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the commands."""
    judge = commands.add_parser("judge", help="judge a stored run again")
    judge.add_argument("run_dir", metavar="RUN_DIR")
    judge.add_argument("--json", action="store_true", help="print verdict.json")
    judge.set_defaults(run=_judge)
    report = commands.add_parser("report", help="write a stored run up again and print one of its reports")
    report.add_argument("run_dir", metavar="RUN_DIR")
    report.add_argument("--format", choices=[*_FILES, *_TEXTS], default="md", help="which report to print (default md)")
    report.set_defaults(run=_report)


def _judge(arguments: argparse.Namespace, front: Front) -> int:
    """The exit code of the verdict."""
    path = run_directory(arguments.run_dir)
    try:
        _, _, verdict = judged(path)
    except NotARun as reason:
        raise BadInput(str(reason)) from reason
    front.say_json(to_json(verdict)) if arguments.json else front.say(block(verdict).rstrip("\n"))
    return verdict.exit_code


def _report(arguments: argparse.Namespace, front: Front) -> int:
    """0 when the reports could be written, whatever they say."""
    path = run_directory(arguments.run_dir)
    try:
        if text := _TEXTS.get(arguments.format):
            front.say(text(gather(*judged(path), path)).rstrip("\n"))
        else:
            write_up(path)
            front.say((path / _FILES[arguments.format]).read_text().rstrip("\n"))
    except NotARun as reason:
        raise BadInput(str(reason)) from reason
    return UPHELD
