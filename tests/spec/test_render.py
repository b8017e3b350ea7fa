"""One value, four views."""

from __future__ import annotations

import json

from chaos.spec.diagnostic import Diagnostic, Related, Source, Span, ordered
from chaos.spec.render import render_full, render_github, render_lines, to_json

SOURCE = Source("experiments/x.yaml", "duration: 60s\n" + "\n" * 8 + "for: 120s\n")
PROBLEM = Diagnostic(
    "fault-exceeds-blast-radius",
    "a fault of 120s is longer than the blast radius allows",
    Span(SOURCE, 10, 6, 10, 10),
    "faults.0.for",
    help="shorten it: 100% sure, or raise the limit",
    label="asks for 120s",
    related=(Related(Span(SOURCE, 1, 11, 1, 14), "limit set here"),),
)


def test_people_see_both_places_with_aligned_line_numbers():
    assert render_full([PROBLEM]) == (
        "error[fault-exceeds-blast-radius]: a fault of 120s is longer than the blast radius allows\n"
        "  --> experiments/x.yaml:10:6 (faults.0.for)\n"
        "   |\n"
        "10 | for: 120s\n"
        "   |      ^^^^ asks for 120s\n"
        "   |\n"
        " 1 | duration: 60s\n"
        "   |           --- limit set here\n"
        "   = help: shorten it: 100% sure, or raise the limit\n"
    )


def test_editors_see_one_line():
    where, what = "experiments/x.yaml:10:6: error[fault-exceeds-blast-radius]: ", PROBLEM.headline
    assert f"{where}{what}\n" == render_lines([PROBLEM])


def test_programs_see_every_field():
    (record,) = json.loads(json.dumps(to_json([PROBLEM])))
    assert tuple(record[k] for k in ("file", "line", "column", "end_line", "end_column")) == (
        "experiments/x.yaml",
        10,
        6,
        10,
        10,
    )
    assert record["related"][0] == {
        "file": "experiments/x.yaml",
        "line": 1,
        "column": 11,
        "end_line": 1,
        "end_column": 14,
        "label": "limit set here",
    }


def test_ci_sees_an_annotation_with_its_special_characters_escaped():
    assert render_github([PROBLEM]) == (
        "::error file=experiments/x.yaml,line=10,endLine=10,col=6,endColumn=10,title=fault-exceeds-blast-radius"
        "::a fault of 120s is longer than the blast radius allows%0Ahelp: shorten it: 100%25 sure, or raise the limit\n"
    )


def test_nothing_wrong_prints_nothing():
    assert (render_full([]), render_lines([]), render_github([]), to_json([])) == ("", "", "", [])


def test_carets_stand_under_wide_characters_and_tabs():
    source = Source("x", "\t温度: 30")
    text = render_full([Diagnostic("c", "h", Span(source, 1, 6, 1, 8))])
    assert "1 |  温度: 30\n  |        ^^\n" in text


def test_a_very_long_line_is_cut_around_the_caret():
    source = Source("x", "a" * 5_000 + "HERE" + "b" * 5_000)
    text = render_full([Diagnostic("c", "h", Span(source, 1, 5_001, 1, 5_005))])
    line, marks = text.split("\n")[3:5]
    assert len(line) < 160
    assert line[marks.index("^") : marks.rindex("^") + 1] == "HERE"


def test_a_span_over_several_lines_is_marked_to_the_end_of_its_first():
    source = Source("x", "why: |\n  a\n  b\n")
    assert "1 | why: |\n  |      ^\n" in render_full([Diagnostic("c", "h", Span(source, 1, 6, 4, 1))])


def test_problems_are_sorted_by_source_and_position_and_told_once():
    option = Source("--set", "a=1", rank=1)
    early, late = Diagnostic("b", "h", Span(SOURCE, 1, 1, 1, 2)), Diagnostic("a", "h", Span(SOURCE, 10, 1, 10, 2))
    of_option = Diagnostic("a", "h", Span(option, 1, 1, 1, 2))
    assert (early, late, of_option) == ordered([of_option, late, early, late])
