"""A series on disk: `series.json` and `series.md` beside the run directories it counts.

    series-2026-12-01T09-00-00Z-1a2b/
      series.json  series.md  experiment.yaml  environment.json
      2026-12-01T09-00-01Z-ab12/  ...        one run directory a run

Everything is written anew after each run, whole, so a kill at any instant costs at most the run that was going on. A
run that came to its end but not into series.json, because we were killed in between, is found and counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos.ports import Files
from chaos.series.document import NotASeries, order_of, to_text
from chaos.series.order import Entry, Series, came_to_its_end, seed_of
from chaos.series.page import to_markdown
from chaos.verdict.document import from_json as verdict_from
from chaos.verdict.outcome import Verdict

SERIES_FILE = "series.json"
PAGE_FILE = "series.md"
EXPERIMENT_FILE = "experiment.yaml"
ENVIRONMENT_FILE = "environment.json"
_VERDICT_FILE = "verdict.json"
_EVIDENCE_FILE = "journal.jsonl"


def save(files: Files, folder: Path, series: Series) -> None:
    """Write both pages. Raises OSError."""
    files.write_atomic(folder / PAGE_FILE, to_markdown(series, str(folder)))
    files.write_atomic(folder / SERIES_FILE, to_text(series))


def thin(files: Files, folder: Path, entry: Entry) -> Entry:
    """Forget the evidence of a run, its journal last, so that half of it is never taken for a whole run; its verdict
    stays. Raises OSError.
    """
    run_dir = folder / entry.folder
    for name in sorted(files.names(run_dir), key=_EVIDENCE_FILE.__eq__):
        if name != _VERDICT_FILE:
            files.remove(run_dir / name)
    return replace(entry, whole=False)


def is_series(folder: Path) -> bool:
    """Whether a directory holds a series."""
    return (folder / SERIES_FILE).is_file()


def load(folder: Path) -> Series:
    """A stored series. Raises NotASeries."""
    document = _document(folder / SERIES_FILE)
    try:
        listed = {str(run["dir"]): int(run["number"]) for run in document["runs"]}
        cut_short = tuple(str(name) for name in document["cut_short"])
    except (KeyError, TypeError, ValueError) as error:
        raise NotASeries(f"`{folder / SERIES_FILE}` is damaged: {type(error).__name__}: {error}") from error
    series = Series(folder.resolve().name, order_of(document), cut_short=cut_short)
    for name, number in listed.items():
        series = series.with_run(_entry(folder, name, number))
    return _with_strays(folder, series)


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotASeries(f"`{path}` cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise NotASeries(f"`{path}` is not a series")
    return document


def _entry(folder: Path, name: str, number: int) -> Entry:
    verdict = _verdict(folder / name)
    if verdict is None:
        raise NotASeries(f"`{folder / name}` of this series has no {_VERDICT_FILE} that can be read")
    return Entry(number, name, verdict, whole=(folder / name / _EVIDENCE_FILE).is_file())


def _verdict(run_dir: Path) -> Verdict | None:
    try:
        return verdict_from(json.loads((run_dir / _VERDICT_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _with_strays(folder: Path, series: Series) -> Series:
    """Runs that series.json does not know: whole ones take their place by their seed, others were cut short."""
    known = {*series.cut_short, *(entry.folder for entry in series.entries)}
    numbers = {seed_of(series.order.seed, number): number for number in range(1, series.order.most + 1)}
    for run_dir in sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in known):
        verdict = _verdict(run_dir)
        number = numbers.get(verdict.seed) if verdict and came_to_its_end(verdict) else None
        taken = any(entry.number == number for entry in series.entries)
        if number is None or taken:
            series = series.without(run_dir.name)
        else:
            series = series.with_run(_entry(folder, run_dir.name, number))
    return series
