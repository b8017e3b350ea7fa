"""What people read about a series, compared whole; BROWNOUT_REWRITE=1 writes the texts anew for a reviewer to read."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.series.order import Series
from chaos.series.page import to_markdown
from chaos.series.pool import pool
from chaos.series.told import block, one_line, run_alone, run_line, sentence
from tests.series.made import NAME, series

GOLDEN = Path(__file__).parents[1] / "golden"
REWRITE = os.environ.get("BROWNOUT_REWRITE") == "1"
HUNT: Mapping[str, Any] = {
    "hunt": True,
    "keep": "refuted",
    "weaknesses": ("breaker_missing",),
    "set_": ("load.rate=9/s",),
}
CASES: Mapping[str, Series] = {
    "upheld": series("uuuuiuuuuu"),
    "refuted": series("uuruuuuuuu"),
    "inconclusive": series("uiiu"),
    "unfinished": series("uu", most=10).without("2026-12-01T09-03-00Z-ab12"),
    "hunted": series("uuir", most=50, changes=HUNT),
    "not_found": series("u" * 12, changes={"hunt": True}),
}


def assert_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if REWRITE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("case", CASES)
def test_the_page(case: str) -> None:
    assert_golden(f"series_{case}.md", to_markdown(CASES[case], f"runs/{NAME}"))


def test_the_terminal() -> None:
    texts = [block(made, pool(made), f"runs/{NAME}/series.md") for made in CASES.values()]
    lines = [run_line(CASES["refuted"], entry) for entry in CASES["refuted"].entries[:3]]
    assert_golden("series.txt", "\n".join([*map(one_line, CASES.values()), "", *lines, "", "\n\n".join(texts), ""]))


def test_recovery_is_told_as_a_probability() -> None:
    nine_of_ten = next(h for h in pool(CASES["refuted"]).hypotheses if h.name == "quick recovery")
    assert "back within 5s in 9 of 10 runs: 90% (65.23% to 97.74%)" == sentence(nine_of_ten)


def test_a_hypothesis_that_no_run_decided_has_no_probability() -> None:
    undecided = pool(series("ii")).hypotheses[0]
    assert "no run decided it (2 undecided)" == sentence(undecided)


def test_the_command_of_one_run_can_be_copied_as_it_stands() -> None:
    made = CASES["hunted"]
    first = made.first_refuted
    assert first is not None
    alone = "--weakness breaker_missing --set load.rate=9/s"
    assert f"{alone} --seed {first.seed}" in run_alone(made.order, first)
    assert f"\n{run_alone(made.order, first)}\n" in to_markdown(made, "x")


def test_what_a_stack_or_a_file_says_cannot_become_markup_or_steer_a_terminal() -> None:
    evil = "<script>alert(1)</script> | `x` \x1b"
    made = series("ur")
    entries = tuple(
        replace(
            e, verdict=replace(e.verdict, why=evil, hypotheses=(replace(e.verdict.hypotheses[0], name=evil, why=evil),))
        )
        for e in made.entries
    )
    made = replace(made, order=replace(made.order, title=evil, path=evil, set_=(evil,)), entries=entries)
    page = to_markdown(made, evil)
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.replace("\\`", ""), flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<script", prose)
    for text in (page, block(made, pool(made), evil), one_line(made), run_line(made, entries[0])):
        assert "\x1b" not in text
