"""The fault proxy's exactness, and how soon an abort with ten faults in force has cleared all of them.

`fidelity` needs a machine of its own: what it measures is a fraction of a millisecond.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

from drill import ROOT, Drill, until_whole
from matrix import Figure, Found, Matrix, Row, Trial, ended

sys.path.append(str(ROOT / "benchmarks"))  # last: one of them is called `tools`, as is a file beside this one

from proxy import REQUEST, call, connect, free_port, proxied, server, upstream

from chaos.load.report import quantile

DELAYS_MS = (1, 2, 3, 5, 10, 20, 30, 50)
REQUESTS_EACH = 1250
DIRECT_REQUESTS = 400
ERROR_MOST_MS, ERROR_MOST_SHARE = 0.3, 0.01
SHARE, DRAWS = 0.3, 2000
ABORTS = 100
ALL_CLEAR_WITHIN_S = 0.1
TEN = 10


@contextlib.contextmanager
def peer() -> Iterator[int]:
    """The port of a small server in a process of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        process = multiprocessing.get_context("fork").Process(target=upstream, args=(listener,), daemon=True)
        process.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            process.terminate()
            process.join()


@contextlib.contextmanager
def proxy_server() -> Iterator[int]:
    """The admin port of our proxy."""
    admin = free_port()
    with server([sys.executable, "-m", "chaos.proxy", "-host", "127.0.0.1", "-port", str(admin)], admin):
        yield admin


def trips_ms(port: int, count: int) -> list[float]:
    """One request after the other on one kept connection."""
    times = []
    with connect(port) as sock:
        for _ in range(count):
            asked = time.perf_counter()
            sock.sendall(REQUEST)
            sock.recv(4096)
            times.append((time.perf_counter() - asked) * 1e3)
    return times


def delayed(trial: Trial, drill: Drill) -> Found:
    """What an edge with a latency toxic adds to each request, against what it should.

    The bar is held against a direct request, so it counts what the edge costs by itself; `toxic_ms` leaves that out.
    """
    del drill
    with peer() as direct, proxy_server() as admin:
        port = proxied(admin, direct, -1)
        own_ms, edge_ms = (statistics.median(trips_ms(each, DIRECT_REQUESTS)) for each in (direct, port))
        call(admin, "/proxies/bench/toxics", {"type": "latency", "attributes": {"latency": trial.seed}})
        trips = trips_ms(port, REQUESTS_EACH)
    errors, toxic = ([abs(trip - base - trial.seed) for trip in trips] for base in (own_ms, edge_ms))
    mean_ms, most_ms = statistics.fmean(errors), max(ERROR_MOST_MS, ERROR_MOST_SHARE * trial.seed)
    facts = {"error_ms": round(mean_ms, 4), "toxic_ms": round(statistics.fmean(toxic), 4), "requests": len(errors)}
    wrong = f"mean error {mean_ms:.3f} ms, at most {most_ms:.3f} ms" if mean_ms > most_ms else None
    return Found(wrong, facts)


def shared(trial: Trial, drill: Drill) -> Found:
    """How many requests a toxic with a toxicity below one hits."""
    del trial, drill
    with peer() as direct, proxy_server() as admin:
        port = proxied(admin, direct, -1)
        call(admin, "/proxies/bench/toxics", {"type": "http_status", "toxicity": SHARE, "attributes": {"status": 418}})
        with connect(port) as sock:
            hit = 0
            for _ in range(DRAWS):
                sock.sendall(REQUEST)
                hit += b" 418 " in sock.recv(4096)
    sigma = (DRAWS * SHARE * (1 - SHARE)) ** 0.5
    away = abs(hit - DRAWS * SHARE) / sigma
    return Found(f"{hit} of {DRAWS} hit" if away > 3 else None, {"sigmas": round(away, 3)})


def measured(trial: Trial, drill: Drill) -> Found:
    """A delay, or the share."""
    return delayed(trial, drill) if trial.seed else shared(trial, drill)


def aborted(trial: Trial, drill: Drill) -> Found:
    """SIGINT with ten faults in force; the journal tells how soon the last was reverted."""
    began = time.time()
    with ended(drill.begin_run("ten", "--seed", str(trial.seed))) as process:
        drill.wait_for("fault_injected", process, began)
        give_up = time.monotonic() + 20
        while time.monotonic() < give_up and len(_times(drill, "fault_injected")) < TEN:
            time.sleep(0.05)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    injected, reverted = _times(drill, "fault_injected"), _times(drill, "fault_reverted")
    took_s, broken = until_whole(drill, 5)
    if broken or process.returncode != 3 or len(injected) != TEN or len(reverted) < TEN:
        counts = f"{len(injected)} injected, {len(reverted)} reverted"
        return Found(f"exit code {process.returncode}, {counts}, broken {broken}: {out}{err}")
    return Found(None, {"clear_s": round(max(reverted) - sent, 4), "whole_s": round(took_s, 3)})


def _times(drill: Drill, kind: str) -> list[float]:
    """When such records were written, on the clock of this machine."""
    lines = drill.journal()
    return [lines[0]["origin"] + line["t"] for line in lines if line["kind"] == kind]


def _error_figures(rows: Sequence[Row]) -> list[Figure]:
    errors = [row["error_ms"] for row in rows if "error_ms" in row]
    alone = [row["toxic_ms"] for row in rows if "toxic_ms" in row]
    sigmas = [row["sigmas"] for row in rows if "sigmas" in row]
    requests = sum(row.get("requests", 0) for row in rows)
    return [
        Figure("requests", float(requests), unit=""),
        Figure("mean error", statistics.fmean(errors) if errors else None, unit="ms"),
        Figure("worst delay's", max(errors, default=None), unit="ms"),
        Figure("the toxic's alone", statistics.fmean(alone) if alone else None, unit="ms"),
        Figure("share off by", max(sigmas, default=None), unit=" sigma", below=3),
    ]


def _abort_figures(rows: Sequence[Row]) -> list[Figure]:
    clear = [row["clear_s"] for row in rows if "clear_s" in row]
    return [
        Figure("p50", quantile(clear, 0.5)),
        Figure("p99", quantile(clear, 0.99), below=ALL_CLEAR_WITHIN_S),
        Figure("max", max(clear, default=None)),
    ]


FIDELITY = Matrix(
    "fidelity",
    "a latency toxic adds what it says, within the larger of 1 % and 0.3 ms; a share is met within three sigma",
    lambda: [*(Trial(f"latency/{delay}ms", delay) for delay in DELAYS_MS), Trial("toxicity", 0)],
    measured,
    _error_figures,
    stack=False,
)
ABORT = Matrix(
    "abort",
    "an abort with ten faults in force clears all of them in less than 100 ms",
    lambda: [Trial(f"abort/{number:03}", number) for number in range(ABORTS)],
    aborted,
    _abort_figures,
)
