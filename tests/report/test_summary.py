"""The summary for a terminal: eighty columns, no colours where nobody asked for them, nothing that moves a cursor."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from chaos.progress import Panel
from chaos.report.summary import block, one_line
from chaos.verdict.judge import judge
from chaos.verdict.outcome import Verdict
from tests.verdict.story import CASES, experiment


def verdict(case: str) -> Verdict:
    return judge(experiment(), CASES[case].evidence())


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_run_is_one_line_of_eighty_columns(case: str) -> None:
    line = one_line(verdict(case))
    assert (len(line) <= 80, line.isprintable()) == (True, True), line


@pytest.mark.parametrize("case", sorted(CASES))
def test_what_is_printed_at_the_end_is_plain_text(case: str) -> None:
    assert all(line.isprintable() for line in block(verdict(case), "runs/the-run/report.md").splitlines())


@pytest.mark.parametrize(("environment", "colours"), [({"NO_COLOR": "1"}, False), ({"TERM": "xterm"}, True)])
def test_the_live_view_obeys_no_color_and_fits_into_eighty_columns(environment: dict[str, str], colours: bool) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, legacy_windows=False, _environ=environment)
    with Panel("The vector store goes away for fifteen seconds", 50.0, console) as panel:
        for t, kind, fields in CASES["upheld"].records():
            panel.tell(kind, {"t": t, **fields})
    assert ("\x1b[31m" in screen.getvalue() or "\x1b[1;31m" in screen.getvalue()) == colours
