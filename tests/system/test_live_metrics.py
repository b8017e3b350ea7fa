"""A real run, read in the middle by somebody else, and left alone by it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

import pytest
from drill import Drill
from prometheus_client.openmetrics.parser import text_string_to_metric_families


def read(url: str) -> str:
    request = urllib.request.Request(url, headers={"Accept": "application/openmetrics-text"})
    with urllib.request.urlopen(request, timeout=5) as reply:
        return reply.read().decode()


def scraped(url: str) -> dict[tuple[str, ...], float]:
    """Values by name and sorted labels."""
    families = text_string_to_metric_families(read(url))
    return {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}


def ended(page: dict[tuple[str, ...], float]) -> float:
    """Requests of all loads and outcomes."""
    return sum(value for key, value in page.items() if key[0] == "brownout_requests_total")


def test_a_run_can_be_scraped_in_the_middle_and_its_fault_be_drawn(drill: Drill) -> None:
    began = time.time()
    process = drill.begin_run("process_stall", "--metrics", "127.0.0.1:0", "--set", "faults.0.for=4s")
    url = next(line for line in process.stderr if line.startswith("metrics on ")).split()[-1]
    drill.wait_for("fault_confirmed", process, began)
    during = scraped(url)
    (stretch,) = (a for a in json.loads(read(url.replace("/metrics", "/annotations"))) if ",fault," in a["tags"])
    drill.wait_for("fault_gone", process, began)
    after = scraped(url)
    process.communicate(timeout=60)
    assert ["completed"] == [line["ending"] for line in drill.journal() if line["kind"] == "run_finished"]
    (fault,) = {key for key in during if key[0] == "brownout_fault_in_force"}
    assert (1.0, 0.0) == (during[fault], after[fault])
    assert 1.0 == during["brownout_window", "fault"]
    assert "process_stall" in fault
    assert began * 1000 < stretch["time"] <= stretch["timeEnd"] < time.time() * 1000
    assert 0 <= ended(during) < ended(after)
    with pytest.raises(urllib.error.URLError):
        read(url)
