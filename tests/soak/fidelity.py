"""The fault proxy's exactness: what a latency toxic really adds, and what share of the traffic a toxicity really hits.

A client that has slept for a while wakes up later than one that asks again at once, whoever let it sleep. So a request
that a toxic holds is compared with one that the server itself holds for as long (asleep, then watching the clock):

    toxic      client ─► edge with the toxic ─► server answers at once     the delay, the edge, the client's wake-up
    edge       client ─► edge without toxic  ─► server holds the answer    the delay, the edge, the client's wake-up
    straight   client ────────────────────────► server holds the answer    the delay,           the client's wake-up

The bar is on each request of `toxic` against the median of `edge`, which is the same path without the toxic, asked in
turns with it. Against `straight` the edge's own cost, and that the server slept meanwhile, count as errors of the toxic
too; against the bare delay so does the client's wake-up. Both are shown. No answer may come before its time. Client and
server go before ordinary processes where that is allowed, as the proxy does.
"""

from __future__ import annotations

import contextlib
import http.client
import multiprocessing
import select
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from drill import ROOT, Drill
from matrix import Figure, Found, Matrix, Row, Trial

sys.path.append(str(ROOT / "benchmarks"))  # last: one of them is called `tools`, as is a file beside this one

from proxy import REPLY, REQUEST, call, connect, free_port, proxied, server

from chaos.proxy.prompt import Precedence, be_prompt

DELAYS_MS = (1, 2, 3, 5, 10, 20, 30, 50)
REQUESTS_EACH = 1250
CONTROL_EVERY = 5
ERROR_MOST_MS, ERROR_MOST_SHARE = 0.3, 0.01
EARLY_MOST_MS = 0.001  # what rounding may take
SHARES = (0.05, 0.3, 0.5, 0.9)
DRAWS = 2000
SIGMAS_MOST = 3
SECOND_MS = 1e3
_HOLD = b"hold "
_WATCH_S = 0.001


def hold(listener: socket.socket) -> None:
    """Answers at once, or to `hold MS` so many milliseconds later, to the microsecond. One client asks at a time."""
    be_prompt()
    Precedence().take()
    ends = [listener]
    while True:
        for end in select.select(ends, (), ())[0]:
            if end is listener:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ends.append(client)
            elif not _answer(end):
                ends.remove(end)
                end.close()


def _answer(client: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        asked = client.recv(4096)
        due = time.perf_counter()
        if asked.startswith(_HOLD):
            due += float(asked.removeprefix(_HOLD)) / SECOND_MS
            time.sleep(max(0.0, due - time.perf_counter() - _WATCH_S))
            while time.perf_counter() < due:
                pass
        if asked:
            client.sendall(REPLY)
        return bool(asked)
    return False


@contextlib.contextmanager
def peer() -> Iterator[int]:
    """The port of the server, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        process = multiprocessing.get_context("fork").Process(target=hold, args=(listener,), daemon=True)
        process.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            process.kill()
            process.join()


@contextlib.contextmanager
def proxy_server(*flags: str) -> Iterator[int]:
    """The admin port of our proxy."""
    admin = free_port()
    with server([sys.executable, "-m", "chaos.proxy", "-host", "127.0.0.1", "-port", str(admin), *flags], admin):
        yield admin


@contextlib.contextmanager
def prompt() -> Iterator[None]:
    """This process goes ahead of ordinary ones meanwhile, where it may."""
    be_prompt()
    precedence = Precedence()
    precedence.take()
    try:
        yield
    finally:
        precedence.give_back()


@dataclass
class Way:
    """One kept connection and how long its requests took."""

    port: int
    order: bytes
    trips_ms: list[float] = field(default_factory=list)
    _open: socket.socket | None = None

    def ask(self) -> None:
        """One request, timed."""
        self._open = self._open or connect(self.port)
        asked = time.perf_counter()
        self._open.sendall(self.order)
        self._open.recv(4096)
        self.trips_ms.append((time.perf_counter() - asked) * SECOND_MS)

    def close(self) -> None:
        """End the connection."""
        if self._open:
            self._open.close()


def asked(delay_ms: int, requests: int) -> tuple[Way, Way, Way]:
    """Toxic, edge, straight: taken in turns."""
    with peer() as direct, proxy_server() as admin:
        held = _HOLD + str(delay_ms).encode()
        edge, straight = Way(proxied(admin, direct, None, "edge"), held), Way(direct, held)
        toxic = Way(proxied(admin, direct, delay_ms, "toxic"), REQUEST)
        with prompt():
            for number in range(requests):
                toxic.ask()
                if number % CONTROL_EVERY == 0:
                    edge.ask()
                    straight.ask()
        for way in (toxic, edge, straight):
            way.close()
    return toxic, edge, straight


def delayed(trial: Trial, drill: Drill) -> Found:
    """What a latency toxic adds to each request, against what it should."""
    del drill
    delay_ms = trial.seed
    toxic, edge, straight = asked(delay_ms, REQUESTS_EACH)
    bases = {"raw_ms": float(delay_ms)} | {
        name: statistics.median(way.trips_ms) for name, way in (("error_ms", edge), ("straight_ms", straight))
    }
    means = {name: statistics.fmean(abs(trip - base) for trip in toxic.trips_ms) for name, base in bases.items()}
    most_ms = max(ERROR_MOST_MS, ERROR_MOST_SHARE * delay_ms)
    early = sum(trip < delay_ms - EARLY_MOST_MS for trip in toxic.trips_ms)
    wrong = f"mean error {means['error_ms']:.3f} ms, at most {most_ms:.3f} ms" if means["error_ms"] > most_ms else None
    facts = {name: round(value, 4) for name, value in means.items()}
    return Found(
        f"{early} answers came before their time" if early else wrong, {**facts, "requests": len(toxic.trips_ms)}
    )


def requests_hit(admin: int, port: int, share: float) -> int:
    """How many requests on one connection a toxic hits that chooses single ones."""
    toxic = {"type": "http_status", "toxicity": share, "attributes": {"status": 418}}
    call(admin, "/proxies/bench/toxics", toxic)
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    hit = 0
    for _ in range(DRAWS):
        client.request("GET", "/ping")
        answer = client.getresponse()
        answer.read()
        hit += answer.status == 418
    client.close()
    return hit


def connections_hit(admin: int, port: int, share: float) -> int:
    """How many connections a toxic of Toxiproxy's hits: it ends them before the first byte."""
    call(admin, "/proxies/bench/toxics", {"type": "limit_data", "toxicity": share, "attributes": {"bytes": 0}})
    hit = 0
    for _ in range(DRAWS):
        with connect(port) as sock:
            sock.sendall(REQUEST)
            hit += not sock.recv(4096)
    return hit


CHOOSERS = {"request": requests_hit, "connection": connections_hit}


def shared(trial: Trial, drill: Drill) -> Found:
    """How far the share that is hit is from the toxicity, in standard deviations of so many draws."""
    del drill
    _, chooser, percent = trial.name.split("/")
    share = int(percent) / 100
    with peer() as direct, proxy_server("-seed", str(trial.seed)) as admin:
        hit = CHOOSERS[chooser](admin, proxied(admin, direct), share)
    away = abs(hit - DRAWS * share) / (DRAWS * share * (1 - share)) ** 0.5
    wrong = f"{hit} of {DRAWS} hit, {away:.1f} sigma from {share:.0%}" if away > SIGMAS_MOST else None
    return Found(wrong, {"sigmas": round(away, 3), "hit": hit})


def measured(trial: Trial, drill: Drill) -> Found:
    """A delay, or a share."""
    return delayed(trial, drill) if trial.name.startswith("latency/") else shared(trial, drill)


def figures(rows: Sequence[Row]) -> list[Figure]:
    """Means over the delays; each delay is held against its own bar."""

    def mean(fact: str) -> float | None:
        values = [row[fact] for row in rows if fact in row]
        return statistics.fmean(values) if values else None

    errors, sigmas = ([row[fact] for row in rows if fact in row] for fact in ("error_ms", "sigmas"))
    return [
        Figure("requests", float(sum(row.get("requests", 0) for row in rows)), unit=""),
        Figure("mean error", mean("error_ms"), unit="ms"),
        Figure("worst delay's", max(errors, default=None), unit="ms"),
        Figure("against a straight connection", mean("straight_ms"), unit="ms"),
        Figure("with the client's own", mean("raw_ms"), unit="ms"),
        Figure("share off by", max(sigmas, default=None), unit=" sigma", below=SIGMAS_MOST),
    ]


def trials() -> list[Trial]:
    """Every delay, and every share by request and by connection. A seed is the delay, or that of the proxy's dice."""
    delays = [Trial(f"latency/{delay}ms", delay) for delay in DELAYS_MS]
    shares = [Trial(f"toxicity/{chooser}/{share * 100:.0f}", 1) for chooser in CHOOSERS for share in SHARES]
    return [*delays, *shares]


FIDELITY = Matrix(
    "fidelity",
    "a latency toxic adds what it says, within the larger of 1 % and 0.3 ms; a share is met within three sigma",
    trials,
    measured,
    figures,
    stack=False,
)
