"""What the script of report.html is given, what the page lets in, and how big it gets."""

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import chaos.report.inlined
from chaos.journal.record import Span
from chaos.journal.samples import samples_table
from chaos.journal.spans import SpanTable
from chaos.journal.tables import SampleTable
from chaos.report.facts import Facts, gather
from chaos.report.html import to_html
from chaos.report.inlined import SCRIPTS, STYLES
from chaos.report.page_data import embedded, page_data
from chaos.verdict.judge import judge
from tests.verdict.story import CASES, INJECT, LOAD_START, REVERT, STORM, Story, experiment

ASSETS = Path(chaos.report.inlined.__file__).parent / "assets"
EVIL = "</script><!--<script>\u2028 & '\" <b>"


def facts_of(story: Story, *spans: Span) -> Facts:
    checked, evidence = experiment(), story.evidence()
    evidence = dataclasses.replace(evidence, spans=SpanTable.build(spans))
    return gather(checked, evidence, judge(checked, evidence), PurePosixPath("runs/the-run"))


class Contents(HTMLParser):
    """The policy, and the text of every style and script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.policy = ""
        self.texts: list[tuple[str, str]] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self._inside = f"{tag} {told.get('type') or ''}".strip() if tag in {"style", "script"} else ""
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(told["content"])

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts.append((self._inside, data))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def hash_of(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def test_the_policy_lets_in_this_script_and_this_style_and_nothing_else() -> None:
    page = Contents(to_html(facts_of(CASES["refuted_pile_on"])))
    texts = dict(page.texts)
    assert ["style", "script application/json", "script"] == [kind for kind, _ in page.texts]
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": hash_of(texts["style"]),
        "script-src": hash_of(texts["script"]),
        "base-uri": "'none'",
    }


def test_no_text_can_leave_the_data_and_all_of_it_comes_back() -> None:
    text = embedded({"why": EVIL})
    assert not re.search("[<>&\u2028]", text)
    assert {"why": EVIL} == json.loads(text)


def test_what_a_stack_says_about_itself_stays_text() -> None:
    facts = facts_of(Story(replaced={"event": {"name": EVIL, "source": EVIL}, "fault_confirmed": {"what": EVIL}}))
    contents = Contents(to_html(facts))
    data = json.loads(dict(contents.texts)["script application/json"])
    assert [text for _, _, text in data["moments"] if "<script>" in text]


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_run_has_data_that_json_can_hold(case: str) -> None:
    data = page_data(facts_of(CASES[case]))
    json.dumps(data, allow_nan=False)
    assert len(experiment().hypotheses) == len(data["hypotheses"])
    assert all(0 <= i < len(data["requests"]) for claim in data["hypotheses"] for i in claim["requests"])


def test_a_request_stands_once_however_many_hypotheses_it_speaks_against() -> None:
    data = page_data(facts_of(CASES["refuted_pile_on"]))
    seen = [(row[0], row[1]) for row in data["requests"]]
    assert len(set(seen)) == len(seen)
    assert sum(len(claim["requests"]) for claim in data["hypotheses"]) > len(seen)


def test_a_request_has_every_attempt_at_it_the_first_first() -> None:
    story = CASES["refuted_pile_on"]
    evidence = story.evidence()
    failed = next(sample for sample in story.samples() if sample.outcome == "failed")
    resent = dataclasses.replace(failed, attempt=2, sent_s=failed.end_s, end_s=failed.end_s + 0.4)
    samples = [resent, *(dataclasses.replace(s, final=s != failed) for s in story.samples())]
    table = type(evidence.samples).build(samples)
    whole = dataclasses.replace(facts_of(story), evidence=dataclasses.replace(evidence, samples=table))
    row = next(row for row in page_data(whole)["requests"] if row[1] == failed.request)
    assert [1, 2] == [attempt[0] for attempt in row[-1]]
    assert pytest.approx(0.0005) == row[-1][0][1]


def test_a_request_brings_the_calls_that_were_made_for_it() -> None:
    story = CASES["refuted_pile_on"]
    failed = next(sample for sample in story.samples() if sample.outcome == "failed")
    begin = failed.intended_s
    outer = Span(failed.trace_id, "a", "", "gateway", "callee", "rag", "", begin, begin + 0.5, "error", 1, 12, 0)
    inner = dataclasses.replace(outer, span_id="b", parent_id="a", kind="caller", name="engine", outcome="timeout")
    other = dataclasses.replace(outer, trace_id="f" * 32)
    data = page_data(facts_of(story, inner, outer, other))
    (rows,) = data["traces"].values()
    told = [dict(zip(data["span_columns"], row, strict=True)) for row in rows]
    assert [(0, "rag", "error"), (1, "engine", "timeout")] == [(t["depth"], t["name"], t["outcome"]) for t in told]
    assert pytest.approx(begin - LOAD_START, abs=1e-3) == told[0]["begin"]


def test_windows_faults_and_lanes_lie_where_they_lay() -> None:
    data: dict[str, Any] = page_data(facts_of(CASES["upheld"]))
    assert [["outage", INJECT - LOAD_START, REVERT - LOAD_START]] == data["faults"]
    assert ["baseline", "recovery", "settled"] == [name for name, *_ in data["windows"]]
    (lane,) = data["lanes"]
    assert ["closed", "open", "closed"] == [state for _, _, state, _ in lane["stays"]]


def test_a_hundred_thousand_requests_make_a_page_of_less_than_three_megabytes() -> None:
    few = samples_table(Story(rate=20.0, hurt=STORM, scar_s=14.0).samples())
    many = few.take(np.tile(np.arange(len(few)), 100))
    many = many.set_column(many.schema.get_field_index("request"), "request", pa.array(np.arange(len(many))))
    story = facts_of(CASES["refuted_pile_on"])
    crowd = dataclasses.replace(story.evidence, samples=SampleTable.from_arrow(many))
    page = to_html(dataclasses.replace(story, evidence=crowd))
    data = json.loads(dict(Contents(page).texts)["script application/json"])
    assert 100_000 == sum(map(sum, data["course"]["outcomes"].values()))
    assert len(page.encode()) < 3_000_000


def test_every_file_of_the_page_is_in_it() -> None:
    assert {path.name for path in ASSETS.iterdir()} == {*STYLES, *SCRIPTS}
