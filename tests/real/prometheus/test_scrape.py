"""The real Prometheus scrapes a run that goes on, and its own query language finds the fault."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.adapters.clock import MonotonicClock
from chaos.journal.evidence import load_evidence
from chaos.live.page import LivePage
from chaos.live.server import serving
from chaos.report.prometheus import to_prometheus
from tests.live.test_docs import DASHBOARD, queries
from tests.live.told import plan
from tests.loopback import free_address
from tests.report.test_pages import facts_of
from tests.verdict.story import CASES, JOURNALS

pytestmark = [pytest.mark.real, pytest.mark.prometheus]

EVERY_S = 0.1
FAULT_S = 1.5


def program(name: str) -> str:
    """A program of Debian's package `prometheus`. Raises AssertionError."""
    found = shutil.which(name)
    assert found, f"there is no {name}; apt-get install prometheus"
    return found


@contextlib.contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """A server that scrapes the target ten times a second; its address, once it is ready."""
    config = {"scrape_configs": [{"job_name": "brownout", "scrape_interval": "100ms", "scrape_timeout": "100ms",
                                  "static_configs": [{"targets": [target]}]}]}  # fmt: skip
    (folder / "prometheus.yml").write_text(json.dumps(config))
    address = free_address()
    words = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            assert any(ready(address) for _ in range(300)), "Prometheus does not get ready"
            yield address
        finally:
            process.terminate()


def ready(address: str) -> bool:
    """Whether it is; takes a moment when it is not."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/-/ready", timeout=2) as reply:
        return reply.status == 200
    time.sleep(0.1)
    return False


def asked(address: str, query: str, **more: str) -> dict[str, Any]:
    """The data of an instant query, or of a range where start, end and step are given."""
    path = "query_range" if more else "query"
    url = f"http://{address}/api/v1/{path}?{urllib.parse.urlencode({'query': query, **more})}"
    with urllib.request.urlopen(url, timeout=10) as reply:
        answer = json.load(reply)
    assert answer["status"] == "success", answer
    return answer["data"]


async def fault_told(listen: str, server: str) -> tuple[float, float]:
    """Serve a page, and once it is scraped tell it of a fault; when it was injected and when reverted."""
    clock = MonotonicClock()
    page = LivePage(clock, pytest.fail)
    tell, origin = page.follow(plan()), clock.now()

    def say(kind: str, **fields: Any) -> float:
        tell(kind, {"t": clock.now() - origin, **fields})
        return clock.wall()

    async with serving(page, listen):
        who = {"run": "r", "experiment": "e", "seed": 7, "profile": "embedded"}
        say("run_started", **who, wall=clock.wall(), origin=origin)
        say("load_started", at=clock.now() - origin, loads=[{"name": "chat", "planned": 1}])
        for _ in range(100):
            if (await asyncio.to_thread(asked, server, "brownout_run_running"))["result"]:
                break
            await asyncio.sleep(EVERY_S)
        injected = say("fault_injected", fault="outage")
        await asyncio.sleep(FAULT_S)
        reverted = say("fault_reverted", fault="outage")
        await asyncio.sleep(10 * EVERY_S)
    return injected, reverted


def test_promql_finds_the_window_of_the_fault(tmp_path: Path) -> None:
    """To a few scrapes, on a busy machine; and it understands every query of the dashboard."""
    listen = free_address()
    with prometheus(tmp_path, listen) as server:
        injected, reverted = asyncio.run(fault_told(listen, server))
        span = {"start": f"{injected - 2}", "end": f"{reverted + 2}", "step": "0.1"}
        (series,) = asked(server, "brownout_fault_in_force == 1", **span)["result"]
        assert all(asked(server, query) for query in queries(DASHBOARD))
    times = [float(t) for t, _ in series["values"]]
    assert series["metric"].items() >= {"fault": "outage", "kind": "process_kill", "target": "vector-store"}.items()
    assert injected - EVERY_S <= times[0] <= injected + 1.0
    assert reverted - 1.0 <= times[-1] <= reverted + 1.0


@pytest.mark.parametrize("case", sorted(CASES))
def test_promtool_finds_nothing_to_say_about_the_text_of_a_run(case: str) -> None:
    text = to_prometheus(facts_of(load_evidence(JOURNALS / case)))
    done = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
