"""The command line of the proxy process: a drop-in for `toxiproxy-server`, flags and port included.

Differences from Toxiproxy, all on the data plane and all undone by `--strict`:

* a client that shuts down its sending side still gets the answer (Toxiproxy closes both directions);
* `reset_peer` resets only connections on which it is active (Toxiproxy: all that opened under it);
* removing `timeout` closes only connections on which it was active (Toxiproxy: all).

In both modes: values that crash Toxiproxy (a negative rate, slices of size 0) are clamped, `--seed` is honoured, and a
slow upstream never holds up other clients of the same proxy.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from chaos.proxy.address import AddressError, join, listen
from chaos.proxy.admin import Admin
from chaos.proxy.api import VERSION, Api, load
from chaos.proxy.collection import Collection
from chaos.proxy.metrics import Metrics
from chaos.proxy.prompt import Precedence, be_prompt
from chaos.proxy.proxy import Surroundings
from chaos.proxy.reactor import Reactor
from chaos.proxy.token import TokenTrouble, guarded, token_in

_log = logging.getLogger("brownout.proxy")


@dataclass(frozen=True)
class Options:
    """What the command line says. Without a seed one is drawn and logged."""

    host: str
    port: int
    config: Path | None
    token_file: Path | None
    seed: int | None
    strict: bool
    fair: bool
    proxy_metrics: bool
    runtime_metrics: bool


def parse_arguments(arguments: Sequence[str]) -> Options:
    """The command line as values. Raises SystemExit as argparse does."""
    parser = argparse.ArgumentParser(prog="brownout proxy", description="A fault proxy with Toxiproxy's API.")
    add_flags(parser)
    return options_of(parser.parse_args(arguments))


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags with one dash, as Toxiproxy has them, or two."""
    parser.add_argument("-host", "--host", default="localhost", help="address of the admin API (default: localhost)")
    parser.add_argument("-port", "--port", type=int, default=8474, help="port of the admin API (default: 8474)")
    parser.add_argument("-config", "--config", type=Path, help="JSON file with an array of proxies to create at start")
    parser.add_argument(
        "--token-file", type=Path, metavar="F", help="demand its content as bearer token (made if missing; mode 600)"
    )
    parser.add_argument("-seed", "--seed", type=int, help="makes jitter, slices and toxicity repeatable")
    parser.add_argument(
        "--strict", action="store_true", help="also do what Toxiproxy gets wrong, such as losing a half-close"
    )
    parser.add_argument(
        "--fair", action="store_true", help="share the processor with others even while toxics wait (default: go first)"
    )
    parser.add_argument("-proxy-metrics", "--proxy-metrics", action="store_true", help="traffic counters on /metrics")
    parser.add_argument(
        "-runtime-metrics", "--runtime-metrics", action="store_true", help="process figures on /metrics"
    )
    parser.add_argument("-version", "--version", action="version", version=f"toxiproxy-server version {VERSION}")


def options_of(arguments: argparse.Namespace) -> Options:
    """What the flags say; whatever else the namespace holds is somebody else's."""
    return Options(**{field.name: getattr(arguments, field.name) for field in fields(Options)})


def serve(options: Options) -> int:
    """Serve until SIGTERM or SIGINT; then close everything and return 0.

    Returns 1 if the admin address is not free or the token file cannot be used.
    """
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    reactor = Reactor(Precedence(wanted=not options.fair))
    counters = Metrics(proxy=options.proxy_metrics, runtime=options.runtime_metrics)
    collection = Collection(Surroundings(reactor, seed, options.strict, counters.count))
    api = Api(collection, counters).handle
    try:
        handle = guarded(api, token_in(options.token_file)) if options.token_file else api
        listener, address = listen(join(options.host, options.port))
    except (AddressError, TokenTrouble) as problem:
        _log.error("%s", problem)
        reactor.close()
        return 1
    if options.config:
        _load(collection, options.config)
    admin = Admin(reactor, listener, handle)
    for number in (signal.SIGTERM, signal.SIGINT):
        reactor.on_signal(number, reactor.stop)
    _log.info("admin API on %s, seed %d", address, seed)
    try:
        reactor.run()
    finally:
        admin.close()
        collection.stop()
        reactor.close()
    return 0


def _load(collection: Collection, path: Path) -> None:
    """A bad configuration is logged and no reason not to start, as in Toxiproxy."""
    try:
        problem = load(collection, path.read_bytes())
    except OSError as failure:
        problem = str(failure)
    if problem:
        _log.error("%s: %s", path, problem)


def main(arguments: Sequence[str]) -> int:
    """The whole process from its command line; returns the exit code."""
    return run(parse_arguments(arguments))


def run(options: Options) -> int:
    """Log to stderr at LOG_LEVEL, serve, return the exit code."""
    be_prompt()
    level = os.environ.get("LOG_LEVEL", "info").upper()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=level if level in _LEVELS else "INFO")
    return serve(options)


_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
