"""What people read about a comparison, compared whole; BROWNOUT_REWRITE=1 writes the texts anew for a reviewer."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.comparing.document import to_json
from chaos.comparing.page import names_of, to_markdown
from chaos.comparing.side import Side
from tests.comparing.sides import of_verdict, run_side, series_side
from tests.series.made import run

GOLDEN = Path(__file__).parents[1] / "golden"
REWRITE = os.environ.get("BROWNOUT_REWRITE") == "1"
CASES: Mapping[str, tuple[Side, ...]] = {
    "worse": (run_side("u"), run_side("r", 2, "runs/x/two", commit="4567cdef", cores=4)),
    "alike": (run_side("u"), run_side("u", 2, "runs/x/two")),
    "three": (run_side("r"), run_side("i", 2, "runs/x/two"), run_side("u", 3, "runs/x/three")),
    "series": (series_side("uuuuuuuu"), series_side("rrurruur", "runs/x/series-2", distributions={"numpy": "2.2.0"})),
    "mixed": (series_side("uuuuuuuu"), run_side("r")),
}


@pytest.mark.parametrize("case", CASES)
def test_the_page(case: str) -> None:
    path, text = (
        GOLDEN / f"compare_{case}.md",
        to_markdown(CASES[case], ["the plans differ"] if case == "worse" else []),
    )
    if REWRITE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("case", CASES)
def test_a_program_gets_the_same_answer_in_json(case: str) -> None:
    document = to_json(CASES[case], ["x"])
    assert document == json.loads(json.dumps(document, allow_nan=False))
    assert (case in {"worse", "series", "mixed"}) is document["regressed"]
    assert {"name", "change", "real", "why", "sides"} == set(document["hypotheses"][0])
    assert len(CASES[case]) == len(document["sides"]) == len(document["hypotheses"][0]["sides"])


def test_columns_have_names_however_many_sides_there_are() -> None:
    names = names_of([run_side("u")] * 40)
    assert ("A", "B", 40, 40) == (names[0], names[1], len(names), len(set(names)))


def test_what_a_run_says_about_itself_cannot_become_markup() -> None:
    evil = "<script>alert(1)</script> | `x` \x1b"
    side = replace(of_verdict(run("u")), label=evil, title=evil, around={evil: evil}, during={evil: evil})
    page = to_markdown([side, replace(side, around={evil: "other"})], [evil])
    prose = re.sub(r"`[^`\n]*`", "", page.replace("\\`", ""))
    assert not re.search(r"(?<!\\)<script", prose)
    assert "\x1b" not in page
