"""What a long evening relies on: nothing is run twice, nothing is lost, and a missed bar is never met."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system")]

from drill import Drill
from matrix import LEFT_BEHIND, Figure, Found, Ledger, Matrix, Trial, carry_on, score


def matrix(ran: list[str], count: int = 3, below: float = 10.0, wrong: str | None = None) -> Matrix:
    def carry_out(trial: Trial, drill: Drill) -> Found:
        ran.append(trial.name)
        return Found(wrong, {"took": trial.seed})

    return Matrix(
        "toy",
        "a toy",
        lambda: [Trial(f"toy/{n}", n) for n in range(count)],
        carry_out,
        lambda rows: [Figure("worst", max((row["took"] for row in rows), default=None), below=below)],
        stack=False,
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "soak" / "toy.jsonl")


def carried_out(chosen: Matrix, ledger: Ledger, tmp_path: Path) -> None:
    carry_on(chosen, ledger, lambda text: None, lambda: contextlib.nullcontext(Drill(tmp_path)))


def test_a_recorded_trial_is_not_run_again(ledger: Ledger, tmp_path: Path) -> None:
    ran: list[str] = []
    carried_out(matrix(ran, count=2), ledger, tmp_path)
    carried_out(matrix(ran, count=3), ledger, tmp_path)
    assert ["toy/0", "toy/1", "toy/2"] == ran
    assert [0, 1, 2] == [row["seed"] for row in ledger.rows()]


def test_a_line_that_a_kill_cut_off_is_run_again(ledger: Ledger, tmp_path: Path) -> None:
    ran: list[str] = []
    carried_out(matrix(ran, count=2), ledger, tmp_path)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-7])
    carried_out(matrix(ran, count=2), ledger, tmp_path)
    assert ["toy/0", "toy/1", "toy/1"] == ran
    assert ["toy/0", "toy/1"] == [row["trial"] for row in ledger.rows()]


def test_a_trial_that_raises_fails_and_the_others_go_on(ledger: Ledger, tmp_path: Path) -> None:
    def breaks(trial: Trial, drill: Drill) -> Found:
        raise OSError("no such thing")

    broken = Matrix("toy", "a toy", lambda: [Trial("a", 1), Trial("b", 2)], breaks, stack=False)
    carried_out(broken, ledger, tmp_path)
    assert ["OSError: no such thing"] * 2 == [row["why"] for row in score(broken, ledger).failed]


@pytest.mark.parametrize(
    ("met", "chosen"),
    [
        (True, matrix([])),
        (False, matrix([], below=2.0)),
        (False, matrix([], wrong="broken")),
        (False, matrix([], count=0)),
    ],
)
def test_a_matrix_is_met_when_every_trial_passed_and_every_bar_is_kept(
    ledger: Ledger, tmp_path: Path, met: bool, chosen: Matrix
) -> None:
    carried_out(chosen, ledger, tmp_path)
    assert met == score(chosen, ledger).met


def test_a_matrix_that_was_cut_short_is_not_met(ledger: Ledger, tmp_path: Path) -> None:
    carried_out(matrix([], count=2), ledger, tmp_path)
    assert not score(matrix([], count=3), ledger).met


def test_a_process_left_behind_fails_the_matrix(ledger: Ledger, tmp_path: Path) -> None:
    carried_out(matrix([]), ledger, tmp_path)
    ledger.append({"trial": LEFT_BEHIND, "seed": 0, "passed": False, "why": "1: python", "commit": None})
    assert not score(matrix([]), ledger).met


def test_a_figure_that_is_missing_keeps_no_bar() -> None:
    assert not Figure("worst", None, below=1.0).met()
