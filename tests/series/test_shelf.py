"""A series on disk: read back as it was, whole after a death at any step, thinned only as asked."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.adapters.files import LocalFiles
from chaos.series.document import NotASeries, to_json
from chaos.series.order import Series
from chaos.series.shelf import is_series, load, save, thin
from chaos.verdict.document import to_text
from tests.series.made import NAME, run, series

FILES = LocalFiles()


def shelved(folder: Path, made: Series) -> Path:
    """The series as `brownout run` leaves it: its pages, and a directory for each run."""
    home = folder / NAME
    for entry in made.entries:
        shelve_run(home / entry.folder, to_text(entry.verdict))
    save(FILES, home, made)
    return home


def shelve_run(run_dir: Path, verdict: str | None) -> None:
    run_dir.mkdir(parents=True)
    for name in ("journal.jsonl", "samples.arrows", "experiment.yaml"):
        (run_dir / name).write_text("evidence")
    if verdict is not None:
        (run_dir / "verdict.json").write_text(verdict)


@pytest.mark.parametrize("letters", ["uuriu", "u", ""])
def test_a_series_is_read_back_as_it_was(tmp_path: Path, letters: str) -> None:
    made = series(
        letters, most=9, changes={"weaknesses": ("breaker_missing",), "set_": ("a=b",), "profile": "embedded"}
    )
    home = shelved(tmp_path, made)
    assert (made, True, False) == (load(home), is_series(home), is_series(tmp_path))


def test_the_promised_keys_are_there_and_every_number_is_json(tmp_path: Path) -> None:
    document = json.loads((shelved(tmp_path, series("uru")) / "series.json").read_text())
    promised = "version series experiment seed asked verdict exit_code why upheld refuted inconclusive runs hypotheses"
    assert set(promised.split()) <= set(document)
    assert {"number", "seed", "dir", "verdict", "exit_code"} <= set(document["runs"][0])
    slow = next(h for h in document["hypotheses"] if h["name"] == "no slow failure")
    assert (None, [2, 1, 0]) == (slow["values"][1], [slow["upheld"], slow["refuted"], slow["inconclusive"]])


def test_a_run_that_ended_before_series_json_knew_it_is_counted_by_its_seed(tmp_path: Path) -> None:
    home = shelved(tmp_path, series("u", most=3))
    shelve_run(home / "late", to_text(run("r", 3)))
    found = load(home)
    assert ([1, 3], "late", 2) == ([e.number for e in found.entries], found.entries[1].folder, found.due())


@pytest.mark.parametrize("left", [None, to_text(run("g", 2)), "{ torn", to_text(replace(run("u"), seed=12345))])
def test_a_run_that_was_cut_short_is_kept_but_made_again(tmp_path: Path, left: str | None) -> None:
    """Killed before its verdict, ended early, half written, or of another series."""
    home = shelved(tmp_path, series("u", most=3))
    shelve_run(home / "cut", left)
    found = load(home)
    assert (("cut",), 2, True) == (found.cut_short, found.due(), (home / "cut" / "journal.jsonl").exists())


def test_a_second_run_of_the_same_seed_does_not_count(tmp_path: Path) -> None:
    home = shelved(tmp_path, series("u", most=3))
    shelve_run(home / "again", to_text(run("r", 1)))
    assert (["upheld"], ("again",)) == ([e.verdict.verdict for e in load(home).entries], load(home).cut_short)


def test_of_a_thinned_run_only_the_verdict_is_left(tmp_path: Path) -> None:
    home = shelved(tmp_path, series("ur"))
    upheld = thin(FILES, home, load(home).entries[0])
    assert ["verdict.json"] == [path.name for path in (home / upheld.folder).iterdir()]
    assert [False, True] == [entry.whole for entry in load(home).entries]
    assert to_json(load(home))["verdict"] == "refuted"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', '{"version": 1}', '{"version": 1, "runs": [1]}'])
def test_what_is_no_series_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "series.json").write_text(text)
    with pytest.raises(NotASeries):
        load(tmp_path)


def test_a_listed_run_without_its_verdict_is_refused(tmp_path: Path) -> None:
    """Somebody has taken part of the series away: what is left is not what was counted."""
    home = shelved(tmp_path, series("uu"))
    shutil.rmtree(home / load(home).entries[1].folder)
    with pytest.raises(NotASeries, match=r"has no verdict\.json"):
        load(home)
