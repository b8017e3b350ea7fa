"""What a run ran on."""

from __future__ import annotations

import json
import platform
from pathlib import Path

from chaos.environment import describe


def test_it_has_what_two_runs_are_compared_by() -> None:
    found = describe(None, seed=7, profile="embedded", weaknesses=["breaker_missing"])
    assert (7, "embedded", ["breaker_missing"]) == (found["seed"], found["profile"], found["weaknesses"])
    assert (platform.python_version(), platform.release()) == (found["python"], found["kernel"])
    assert found["cores"] >= found["cores_allowed"] >= 1
    assert (found["memory_bytes"] or 2**30) > 2**20
    assert {"brownout", "numpy", "pyarrow", "aiohttp"} <= found["distributions"].keys()
    assert found == json.loads(json.dumps(found))


def test_the_host_can_be_recognised_and_not_found() -> None:
    one, other = describe(None), describe(None)
    assert one["host"] == other["host"]
    assert platform.node() not in one.values()


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert describe(None)["commit"] is None
    assert describe(tmp_path)["commit"] is None
