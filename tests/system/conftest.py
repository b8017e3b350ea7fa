"""One stack for all system tests, brought up through the command line and taken down the same way."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from drill import Drill, until_whole


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts real processes."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.system)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder with a short name: a stack's control socket lies below it, and Linux allows 107 bytes for its path."""
    with tempfile.TemporaryDirectory(prefix="bd-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    """A drill whose stack is up for the whole session."""
    drill = Drill(tmp_path_factory.mktemp("drill"))
    up = drill.call("up")
    assert up.returncode == 0, up.stderr
    yield drill
    down = drill.call("down")
    assert down.returncode == 0, down.stderr


@pytest.fixture
def drill(stack: Drill) -> Iterator[Drill]:
    """The shared stack, whole before and after each test."""
    took, broken = until_whole(stack, 15)
    assert not broken, f"the stack was broken before the test: {broken} after {took:.1f}s"
    yield stack
    took, broken = until_whole(stack, 15)
    assert not broken, f"the test left this behind: {broken}"
