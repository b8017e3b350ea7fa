"""What a person sees of a run that goes on: plain lines without a terminal, a panel on one."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from chaos.journal.record import Sample
from chaos.progress import Lines, Panel, Progress
from tests.verdict.story import CASES, LOAD_START, Story

GOLDEN = Path(__file__).parent / "golden"
FLAPS = tuple(
    (19.0 + i, "event", {"source": "gateway", "name": name, "dependency": "vector-store", "at": 18.9 + i})
    for i, name in enumerate(["breaker_half_open", "breaker_opened"] * 4)
)


def feed(progress: Progress, records: Iterable[tuple[float, str, Mapping[str, Any]]]) -> None:
    for t, kind, fields in records:
        progress.tell(kind, {"t": t, **fields})


def in_order(story: Story) -> list[tuple[float, str, Mapping[str, Any]]]:
    return sorted(story.records(), key=lambda record: record[0])


def test_the_lines_of_a_run() -> None:
    said: list[str] = []
    with Lines(said.append) as lines:
        feed(lines, in_order(Story(added=FLAPS)))
    assert said == (GOLDEN / "progress_lines.txt").read_text(encoding="utf-8").splitlines()


def test_a_run_that_dies_still_tells_what_was_held_back() -> None:
    said: list[str] = []
    with Lines(said.append) as lines:
        feed(lines, [record for record in in_order(Story(added=FLAPS)) if record[0] < 26.5])
    assert "more breaker_half_open" in said[-1]


def test_a_sample_is_no_line() -> None:
    said: list[str] = []
    Lines(said.append).tell("sample", {"sample": next(CASES["upheld"].samples())})
    assert said == []


class Watched:
    """A panel on a terminal that only remembers: `lines` is everything printed above the panel and in it."""

    def __init__(self) -> None:
        self.screen = io.StringIO()
        console = Console(file=self.screen, width=100, force_terminal=True, color_system=None, legacy_windows=False)
        self.panel = Panel("A [bold]title[/bold]", 50.0, console)

    def row(self, name: str) -> str:
        """The newest row of this name."""
        return next(line for line in reversed(self.screen.getvalue().splitlines()) if line.startswith(name)).strip()


def sample(end_s: float, outcome: Any = "good", first_s: float | None = 0.05) -> Sample:
    due = end_s - 0.1
    first = None if first_s is None else due + first_s
    return Sample("chat", 1, 1, True, due, due, first, end_s, outcome, "", 200, "", "", 3, (), None, "")


def test_before_the_load_the_panel_waits_for_the_gate() -> None:
    watched = Watched()
    with watched.panel:
        assert "time          waiting for the gate" == watched.row("time")
        assert "in force      nothing" == watched.row("in force")


def test_the_panel_tells_what_users_feel_now_and_what_is_broken() -> None:
    watched = Watched()
    with watched.panel as panel:
        feed(panel, [record for record in in_order(Story()) if record[0] < 18])
        for one in (sample(19.0), sample(19.1, "degraded"), sample(19.2), sample(19.9, "failed", None)):
            panel.tell("sample", {"sample": one})
        assert f"time          {19.9 - LOAD_START:.0f}s of 50s" == watched.row("time")
        assert "served        75% of the last 3s (1 degraded, 1 failed)" == watched.row("served")
        assert "first token   p50 50ms, p99 never" == watched.row("first token")
        assert "in force      outage on vector-store" == watched.row("in force")


def test_after_the_revert_nothing_is_in_force_and_the_lines_stay_above() -> None:
    watched = Watched()
    with watched.panel as panel:
        feed(panel, in_order(Story(added=FLAPS)))
        assert "in force      nothing" == watched.row("in force")
    screen = watched.screen.getvalue()
    assert all(line in screen for line in (GOLDEN / "progress_lines.txt").read_text(encoding="utf-8").splitlines())


def test_brackets_in_a_title_are_no_markup() -> None:
    watched = Watched()
    with watched.panel:
        assert "A [bold]title[/bold]" in watched.screen.getvalue()
