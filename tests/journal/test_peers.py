"""Strangers read a run directory as docs/evidence.md tells them, and find what our judge finds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from chaos.journal.evidence import load_evidence
from chaos.journal.reader import read_journal
from chaos.journal.samples import READINGS_SCHEMA, SAMPLES_FILE, SAMPLES_SCHEMA
from chaos.journal.spans import SPANS_SCHEMA
from chaos.verdict.judge import judge
from tests.verdict.story import INJECT, JOURNALS, REVERT, STORM, Story, experiment

PAGE = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
CLAIMS = (
    "  - {name: served, window: outage, measure: success_ratio, at_least: 99%}\n"
    "  - {name: waits, window: outage, measure: ttft, quantile: p99, at_most: 1s}\n"
    "  - {name: pauses, window: outage, measure: itl, quantile: p99, at_most: 1s}\n"
)
CUTS = (None, 0.45, 0.62, 0.99)


def recipe(title: str) -> str:
    """The block of code below a heading."""
    section = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]


def answers(title: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float, float]:
    """Share served, p99 of the first token and p99 of the pauses, as a stranger computes them."""
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"FAULT_START": INJECT, "FAULT_END": REVERT}
    exec(recipe("pandas").split("\n\n\nsamples", 1)[0], names)  # noqa: S102  the page's own words
    exec(recipe(title), names)  # noqa: S102  the page's own words
    return tuple(float(names[name]) for name in ("served", "ttft_p99_s", "gap_p99_s"))


def ours(folder: Path) -> tuple[float, float, float]:
    """The same three, as our judge has them."""
    text = (folder / "experiment.yaml").read_text().split("hypotheses:\n")[0] + "hypotheses:\n" + CLAIMS
    verdict = judge(experiment(text), load_evidence(folder))
    return tuple(float("nan") if h.value is None else h.value for h in verdict.hypotheses)


@pytest.fixture(params=CUTS, ids=lambda cut: "whole" if cut is None else f"cut at {cut:.0%}")
def run_dir(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A run whose samples come in many batches; cut anywhere, as a kill does."""
    from chaos.journal.samples import sample_writer

    Story(hurt=STORM).write(tmp_path / "run")
    path = tmp_path / "run" / SAMPLES_FILE
    path.unlink()
    writer = sample_writer(tmp_path / "run", most_rows=60)
    for sample in Story(hurt=STORM).samples():
        writer.append(sample)
    writer.close()
    if request.param is not None:
        path.write_bytes(path.read_bytes()[: int(request.param * path.stat().st_size)])
    return tmp_path / "run"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("title", ["pandas", "polars", "DuckDB"])
def test_a_stranger_finds_what_our_judge_finds(title: str, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = ours(run_dir), answers(title, run_dir, monkeypatch)
    assert theirs[0] == pytest.approx(mine[0])
    assert theirs[1:] == pytest.approx(mine[1:], rel=0.01)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("column", ["outcome", "served_by", "degraded"])
def test_polars_opens_a_whole_file_by_itself(column: str, tmp_path: Path) -> None:
    import polars as pl

    Story().write(tmp_path / "run")
    whole = pl.read_ipc_stream(tmp_path / "run" / SAMPLES_FILE)
    mine = getattr(load_evidence(tmp_path / "run").samples, column).tolist()
    assert whole[column].cast(pl.String).to_list() == mine


def test_the_sql_of_the_writer_turns_sketches_back_into_seconds(tmp_path: Path) -> None:
    import duckdb
    import pyarrow as pa

    from chaos.journal import samples as module

    query = re.search(r"    SELECT load, request.*?FROM samples\)\n", module.__doc__ or "", re.DOTALL)
    assert query
    Story().write(tmp_path / "run")
    samples = pa.ipc.open_stream(tmp_path / "run" / SAMPLES_FILE).read_all()
    assert len(samples) == 1000
    rows = duckdb.sql(query[0]).fetchall()
    assert {pauses for *_, pauses in rows} == {4}
    assert [gap_s for _, _, gap_s, _ in rows] == pytest.approx([0.02] * 1000, rel=0.01)


def test_ten_lines_of_the_standard_library_check_a_sealed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Story().write(tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    check = recipe("The journal, and how to check it")
    exec(check, {})  # noqa: S102  the page's own words
    samples = Path(SAMPLES_FILE).read_bytes()
    Path(SAMPLES_FILE).write_bytes(samples[:-9] + b"x" + samples[-8:])
    with pytest.raises(AssertionError, match=r"samples.arrows was changed"):
        exec(check, {})  # noqa: S102  the page's own words
    lines = Path("journal.jsonl").read_bytes().splitlines(keepends=True)
    Path("journal.jsonl").write_bytes(b"".join([*lines[:3], lines[3].replace(b"l1", b"l2"), *lines[4:]]))
    with pytest.raises(AssertionError, match="line 4 was changed"):
        exec(check, {})  # noqa: S102  the page's own words


def test_seals_of_before_have_no_digests_and_are_accepted() -> None:
    journal = read_journal((JOURNALS / "upheld" / "journal.jsonl").read_bytes())
    assert "sha256" not in journal.records[-1].fields
    assert load_evidence(JOURNALS / "upheld").problems == ()


@pytest.mark.parametrize(
    ("title", "schema"),
    [("samples.arrows", SAMPLES_SCHEMA), ("readings.arrows", READINGS_SCHEMA), ("spans.arrows", SPANS_SCHEMA)],
)
def test_every_column_is_documented_in_its_order(title: str, schema: object) -> None:
    section = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == schema.names


def test_what_the_page_says_of_buckets_is_what_the_code_does() -> None:
    from chaos.journal.sketch import ERROR, NEVER, bounds_of

    assert (ERROR, NEVER) == (0.01, 32767)
    told = bounds_of(np.array([500]))[1][0]
    assert told == pytest.approx(1e-6 * 0.99 * (1.01 / 0.99) ** 500)
