"""A real run writes its row into the marked block of its page, and not one byte of what people wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from drill import ROOT, SHORT, Drill

BEGIN, END = b"<!-- brownout:rehearsed:begin -->", b"<!-- brownout:rehearsed:end -->"
BY_HAND = "\r\nCall Ada first: she knows the rack.\t \u2014 no line end after this".encode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project folder of its own: one short experiment and the page that it rehearses."""
    for folder in ("experiments/gpu", "runbooks"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(SHORT / "noop.yaml", tmp_path / "experiments/gpu/noop.yaml")
    page = (ROOT / "runbooks/gpu-node-loss.md").read_bytes()
    (tmp_path / "runbooks/gpu-node-loss.md").write_bytes(page + BY_HAND)
    return tmp_path


def cut(page: bytes) -> tuple[bytes, bytes, bytes]:
    """What people wrote before the block, the block, what they wrote after it."""
    before, _, rest = page.partition(BEGIN)
    block, _, after = rest.partition(END)
    return before, block, after


def test_a_run_refreshes_only_the_marked_block(drill: Drill, project: Path) -> None:
    page = project / "runbooks/gpu-node-loss.md"
    before, _, after = cut(page.read_bytes())
    run = ("run", str(project / "experiments/gpu/noop.yaml"), "--out", str(drill.runs))
    done = drill.call(*run)
    assert 0 == done.returncode, done.stderr
    told = cut(page.read_bytes())
    assert (before, after) == (told[0], told[2])
    row = f"| gpu/noop | upheld | - | - | {drill.last_run().name} |"
    assert row in told[1].decode()

    assert 0 == drill.call(*run, "--no-runbook").returncode
    assert told == cut(page.read_bytes())


def test_a_page_with_broken_markers_is_left_alone_and_the_run_says_so(drill: Drill, project: Path) -> None:
    page = project / "runbooks/gpu-node-loss.md"
    broken = page.read_bytes().replace(END, b"")
    page.write_bytes(broken)
    done = drill.call("run", str(project / "experiments/gpu/noop.yaml"), "--out", str(drill.runs))
    assert (0, broken) == (done.returncode, page.read_bytes())
    assert "gpu-node-loss.md was left as it is" in done.stderr
