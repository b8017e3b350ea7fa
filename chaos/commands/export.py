"""`brownout export`: a stored run handed over to other programs."""

from __future__ import annotations

import argparse
import asyncio

from chaos.adapters.collector import deliver, endpoint_problem
from chaos.adapters.host import real_host
from chaos.commands.files import run_directory
from chaos.commands.front import BadInput, Front
from chaos.report.facts import gather
from chaos.report.otlp_metrics import metrics_document
from chaos.report.otlp_trace import trace_document
from chaos.units import Duration, UnitError
from chaos.verdict.outcome import HARNESS_ERROR, UPHELD
from chaos.writeup import NotARun, judged


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the commands."""
    export = commands.add_parser("export", help="hand a stored run over to other programs")
    places = export.add_subparsers(dest="place", required=True, metavar="PLACE")
    otlp = places.add_parser("otlp", help="metrics and one trace to an OpenTelemetry collector, over HTTP")
    otlp.add_argument("run_dir", metavar="RUN_DIR")
    otlp.add_argument("--endpoint", required=True, metavar="URL", help="the collector, such as http://localhost:4318")
    otlp.add_argument(
        "--within", type=_duration, default=Duration(10), metavar="TIME", help="give up after this long (default 10s)"
    )
    otlp.add_argument("--token-file", metavar="F", help="send its content as bearer token")
    otlp.set_defaults(run=_otlp)


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except UnitError as problem:
        raise argparse.ArgumentTypeError(f"`{text}` is {problem}; write for example `{problem.example}`") from problem


def _otlp(arguments: argparse.Namespace, front: Front) -> int:
    """0 when the collector took everything, whatever the verdict is; 70 when it did not."""
    if problem := endpoint_problem(arguments.endpoint):
        raise BadInput(problem)
    path = run_directory(arguments.run_dir)
    try:
        experiment, evidence, verdict = judged(path)
    except NotARun as reason:
        raise BadInput(str(reason)) from reason
    facts = gather(experiment, evidence, verdict, path)
    trouble = asyncio.run(_send(arguments, [trace_document(facts), metrics_document(facts)]))
    if trouble is not None:
        front.warn(f"error: not exported: {trouble}")
        return HARNESS_ERROR
    front.say(f"exported {verdict.run} to {arguments.endpoint}")
    return UPHELD


async def _send(arguments: argparse.Namespace, documents: list[dict[str, object]]) -> str | None:
    """Both documents within the one time that was allowed; the first trouble ends it."""
    async with real_host() as host:
        give_up = host.clock.now() + arguments.within
        for document in documents:
            trouble = await deliver(
                host.http,
                host.clock,
                arguments.endpoint,
                document,
                within_s=give_up - host.clock.now(),
                token_file=arguments.token_file,
            )
            if trouble is not None:
                return trouble
    return None
