"""`brownout compare` on stored runs and series: what it refuses, what it warns of, and its exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from chaos import cli
from chaos.adapters.files import LocalFiles
from chaos.series.shelf import save
from tests.series.made import NAME, series
from tests.verdict.story import CASES


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stored runs of one experiment, one of another, and a series."""
    folder = tmp_path_factory.mktemp("runs")
    for case, name in (("upheld", "retrieval/x"), ("refuted_pile_on", "retrieval/x"), ("stopped", "another")):
        CASES[case].write(folder / case)
        (folder / case / "plan.json").write_text(json.dumps({"experiment": name}))
    shutil.copytree(folder / "upheld", folder / "again")
    save(LocalFiles(), folder / NAME, series(""))
    (folder / NAME / "experiment.yaml").write_text("the file")
    return folder


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["compare", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_regression_fails_only_where_that_is_asked_for(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = (runs / "upheld", runs / "refuted_pile_on")
    code, out, _ = call(capsys, *sides)
    assert (0, True) == (code, "B against A: worse: users are served" in out)
    assert 1 == call(capsys, *sides, "--fail-on-regression")[0]
    assert 0 == call(capsys, *reversed(sides), "--fail-on-regression")[0]
    assert 0 == call(capsys, runs / "upheld", runs / "again", "--fail-on-regression")[0]


def test_what_users_felt_stands_side_by_side(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, runs / "upheld", runs / "refuted_pile_on")
    assert "| during the fault: served | 300 (100%) | 225 (75%) |" in out
    assert "| weaknesses | none | breaker\\_missing |" in out.replace("breaker_missing", "breaker\\_missing")


def test_a_program_reads_the_same(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, runs / "upheld", runs / "refuted_pile_on", "--json")
    document = json.loads(out)
    assert (0, True, ["upheld", "refuted"]) == (
        code,
        document["regressed"],
        [side["verdict"] for side in document["sides"]],
    )


def test_different_experiments_are_compared_only_when_told(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = (runs / "upheld", runs / NAME)
    code, _, err = call(capsys, *sides)
    assert (64, True) == (code, "`--anyway` compares them" in err)
    code, out, _ = call(capsys, *sides, "--anyway")
    assert (0, True) == (code, "these are different experiments" in out)
    assert "the experiment files differ" in out
    assert "a run is held against a series" in out


def test_a_series_whose_experiment_is_gone_is_bad_input(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(LocalFiles(), runs / "torn", series(""))
    code, _, err = call(capsys, runs / "upheld", runs / "torn")
    assert (64, True) == (code, "cannot be compared" in err)


@pytest.mark.parametrize("names", [["upheld"], ["upheld", "."], ["upheld", "nowhere"]])
def test_what_cannot_be_compared_is_bad_input(runs: Path, capsys: pytest.CaptureFixture[str], names: list[str]) -> None:
    code, _, err = call(capsys, *(runs / name for name in names))
    assert (64, True) == (code, err.startswith("error: "))
