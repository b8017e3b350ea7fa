"""The structured log: whole lines, in order, bounded on disk, there after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from target_stack.gateway.json_lines import JsonLines


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_its_number_both_times_its_name_and_the_fields(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = JsonLines(path, file_bytes=1 << 20, files=2)
    mono = time.monotonic() - 5
    log.add(mono, "breaker_opened", {"dependency": "engine"})
    log.add(mono + 1, "request", {"status": 200})
    log.close()
    first, second = read(path)
    assert first == {
        "seq": 1,
        "mono": round(mono, 6),
        "wall": first["wall"],
        "name": "breaker_opened",
        "dependency": "engine",
    }
    assert first["wall"] == pytest.approx(time.time() - 5, abs=2)
    assert (second["seq"], second["name"], second["status"]) == (2, "request", 200)


def test_a_full_file_moves_on_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for life in range(6):
        log = JsonLines(path, file_bytes=2_000, files=3)
        log.add(float(life), "x", {"life": life, "fill": "f" * 1_500})
        log.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    assert [read(tmp_path / name)[0]["life"] for name in ("log", "log.1", "log.2")] == [5, 4, 3]


def test_a_line_that_a_kill_cut_spoils_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"seq":1}\n{"seq":2,"na')
    log = JsonLines(path, file_bytes=1 << 20, files=2)
    log.add(1.0, "x", {})
    log.close()
    lines = path.read_text().split("\n")
    assert (lines[0], lines[1], json.loads(lines[2])["name"], lines[3]) == ('{"seq":1}', '{"seq":2,"na', "x", "")


@pytest.mark.system
def test_what_was_written_is_there_and_whole_after_a_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "log"
    code = (
        "import sys, time, pathlib\n"
        "from target_stack.gateway.json_lines import JsonLines\n"
        "log = JsonLines(pathlib.Path(sys.argv[1]), file_bytes=1 << 30, files=2)\n"
        "while True:\n    log.add(time.monotonic(), 'request', {'fill': 'x' * 300}); time.sleep(0.0005)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], env=os.environ)
    while not path.exists() or path.stat().st_size < 200_000:
        time.sleep(0.02)
    killed = time.monotonic()
    process.send_signal(signal.SIGKILL)
    process.wait()
    lines = read(path)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert killed - lines[-1]["mono"] < 2.0


def test_a_disk_that_does_not_take_lines_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "log", file_bytes=1 << 20, files=2)
    os.dup2(os.open("/dev/full", os.O_WRONLY), log._descriptor)
    log.add(1.0, "x", {})
    log.close()
    assert log.dropped == 1
