"""A run in its runbook page: the marked block alone is written, and a page that cannot take it is left as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.runbooks.parse import BEGIN, END
from chaos.verdict.judge import judge
from chaos.writeup import refresh_runbook
from tests.verdict.story import Story, experiment


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "runbooks").mkdir()
    return tmp_path / "runbooks" / "vector-store-outage.md"


def refresh(page: Path) -> str | None:
    file = page.parent.parent / "experiments" / "vector_store_outage.yaml"
    return refresh_runbook(file, experiment(), judge(experiment(), Story().evidence()), "2026-12-01")


def test_a_block_that_is_no_text_leaves_the_page_as_it_was_and_the_run_with_its_verdict(page: Path) -> None:
    before = b"# Page\n" + BEGIN + b"\n\xff\n" + END + b"\n"
    page.write_bytes(before)
    trouble = refresh(page)
    assert (True, before) == (str(trouble).startswith(f"{page.name} was left as it is"), page.read_bytes())


def test_a_page_keeps_its_mode_and_stays_where_a_link_points(page: Path, tmp_path: Path) -> None:
    real = tmp_path / "shared.md"
    real.write_bytes(b"# Page\n" + BEGIN + b"\n" + END + b"\n")
    real.chmod(0o640)
    page.symlink_to(real)
    assert refresh(page) is None
    assert (True, 0o640, True) == (page.is_symlink(), real.stat().st_mode & 0o777, b"2026-12-01" in real.read_bytes())
