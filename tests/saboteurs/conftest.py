from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.saboteurs.started import family, soon


@pytest.fixture(autouse=True)
def nobody_stays(tmp_path: Path) -> Iterator[None]:
    """Saboteurs end with their warrants, which are files of the test's folder."""
    yield
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    for path in files:
        path.unlink()
    assert all(soon(lambda path=path: not family(path)) for path in files)
