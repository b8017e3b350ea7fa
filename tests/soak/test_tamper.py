"""A small part of the matrix of changed evidence."""

from __future__ import annotations

import random
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system")]

import pytest
from tamper import CHANGES, sealed, tampered


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tamper") / "run"
    sealed(folder)
    return folder


@pytest.mark.parametrize("how", CHANGES)
def test_a_change_to_sealed_evidence_is_noticed(run_dir: Path, how: str) -> None:
    dice = random.Random(how)
    for _ in range(4):
        assert tampered(run_dir, how, dice)
