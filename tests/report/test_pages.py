"""What people read about a run, compared whole; BROWNOUT_REWRITE=1 writes the texts anew for a reviewer to read."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree as ET

import pytest

from chaos.journal.evidence import Evidence, load_evidence
from chaos.report.facts import Facts, gather
from chaos.report.html import to_html
from chaos.report.junit import to_junit
from chaos.report.markdown import cell, to_markdown
from chaos.report.summary import block, one_line
from chaos.report.timeline_svg import to_svg
from chaos.report.write import write_reports
from chaos.verdict.judge import judge
from tests.verdict.story import CASES, EXPERIMENT, JOURNALS, Story, experiment

GOLDEN = Path(__file__).parents[1] / "golden"
REWRITE = os.environ.get("BROWNOUT_REWRITE") == "1"
EVIL = '<script>alert(1)</script> | "&" `x` \x00\x1b'


def facts_of(evidence: Evidence, text: str = EXPERIMENT) -> Facts:
    checked = experiment(text)
    return gather(checked, evidence, judge(checked, evidence), PurePosixPath("runs/the-run"))


def assert_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if REWRITE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_markdown_report(case: str) -> None:
    assert_golden(f"report_{case}.md", to_markdown(facts_of(load_evidence(JOURNALS / case))))


@pytest.mark.parametrize("case", ["upheld", "refuted_pile_on"])
def test_the_html_report(case: str) -> None:
    """Without what is the same on every page, and without the data of the script: other tests read those."""
    page = to_html(facts_of(load_evidence(JOURNALS / case)))
    for element in ("style", "script"):
        page = re.sub(rf"(<{element}\b[^>]*>).*?(</{element}>)", r"\1\2", page, flags=re.DOTALL)
    assert_golden(f"report_{case}.html", re.sub(r"'sha256-[^']*'", "'sha256-'", page))


@pytest.mark.parametrize("case", ["refuted_pile_on", "inconclusive_too_few_requests", "not_reverted"])
def test_the_junit_file(case: str) -> None:
    assert_golden(f"junit_{case}.xml", to_junit(facts_of(load_evidence(JOURNALS / case))))


def test_the_terminal_summary() -> None:
    verdicts = [facts_of(load_evidence(JOURNALS / case)).verdict for case in sorted(CASES)]
    blocks = [block(verdict, "runs/the-run/report.html") for verdict in verdicts]
    assert_golden("summary.txt", "\n".join(map(one_line, verdicts)) + "\n\n" + "\n\n".join(blocks) + "\n")


def parsed(text: str) -> ET.Element:
    """Our own XML, read by an independent reader."""
    return ET.fromstring(text)  # noqa: S314  the text was made a line above, nobody else wrote it


class Balanced(HTMLParser):
    """Counts that every element is closed, nothing points outside the file, and which scripts there are."""

    VOID = frozenset({"meta", "rect", "path", "br", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.scripts: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        told = {name: str(value) for name, value in attrs}
        self.outside += [told[name] for name in ("src", "onload", "onclick", "style") if name in told]
        self.outside += [told["href"]] if not told.get("href", "#").startswith("#") else []
        self.scripts += [told] if tag == "script" else []
        assert tag not in {"link", "iframe", "img", "object"}

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.handle_starttag(tag, attrs)
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_html_needs_nothing_else_and_is_well_formed(case: str) -> None:
    reader = Balanced()
    reader.feed(to_html(facts_of(CASES[case].evidence())))
    assert (reader.open, reader.outside) == ([], [])
    assert [{"type": "application/json", "id": "run"}, {}] == reader.scripts


def evil() -> Facts:
    story = Story(
        replaced={
            "run_started": {"run": EVIL, "profile": EVIL, "weaknesses": [EVIL]},
            "fault_confirmed": {"what": EVIL, "observer": EVIL},
            "event": {"name": EVIL, "source": EVIL},
            "run_finished": {"ending": EVIL, "why": EVIL},
        }
    )
    text = EXPERIMENT.replace("The vector store goes away for fifteen seconds", "'<script>alert(1)</script> | `x`'")
    return facts_of(story.evidence(), text)


def test_what_a_stack_says_about_itself_cannot_become_markup() -> None:
    reader = Balanced()
    reader.feed(to_html(evil()))
    assert (2, []) == (len(reader.scripts), reader.open)
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", to_markdown(evil()).replace("\\`", ""), flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<script", prose)
    assert parsed(to_junit(evil())).tag == "testsuites"


def test_what_a_stack_says_about_itself_cannot_steer_a_terminal() -> None:
    for text in (block(evil().verdict, EVIL), one_line(evil().verdict), to_markdown(evil())):
        assert not {"\x1b", "\x00"} & set(text)


def test_a_cell_stays_one_cell() -> None:
    assert cell("a|b\nc") == "a\\|b c"
    assert cell("") == "-"


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_picture_is_xml_with_every_point_inside(case: str) -> None:
    picture = parsed(to_svg(facts_of(CASES[case].evidence())))
    _, _, width, height = (float(n) for n in picture.attrib["viewBox"].split())
    for path in picture.iter("{http://www.w3.org/2000/svg}path"):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.attrib["d"]):
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height


def test_a_median_far_above_the_usual_is_drawn_to_scale_while_the_tail_never_ends() -> None:
    """The p99 of the outage is endless; the p50 of 2.7s sets the scale."""
    assert ">3s</text>" in to_svg(facts_of(CASES["refuted_pile_on"].evidence()))


def test_the_replay_command_can_be_copied_as_it_stands() -> None:
    page = to_markdown(facts_of(CASES["refuted_pile_on"].evidence()))
    expected = "brownout run experiments/retrieval/vector_store_outage.yaml --profile embedded --seed 7 "
    assert f"\n{expected}--weakness breaker_missing\n" in page


def test_junit_counts_what_it_holds() -> None:
    suite = parsed(to_junit(facts_of(CASES["refuted_pile_on"].evidence())))[0]
    assert suite.attrib["tests"] == str(len(suite.findall("testcase")))
    assert int(suite.attrib["failures"]) == 7
    assert int(suite.attrib["errors"]) == 0


def test_all_pages_are_written_and_no_draft_is_left(tmp_path: Path) -> None:
    CASES["upheld"].write(tmp_path / "run")
    evidence = load_evidence(tmp_path / "run")
    checked = experiment()
    before = {path.name for path in (tmp_path / "run").iterdir()}
    paths = write_reports(tmp_path / "run", checked, evidence, judge(checked, evidence))
    expected = {"verdict.json", "timeline.svg", "report.md", "report.html", "junit.xml"}
    assert {path.name for path in paths} == expected == {p.name for p in (tmp_path / "run").iterdir()} - before
