"""junit.xml as CI servers read it: against their published schemas, and through a reader that many of them use."""

from __future__ import annotations

from pathlib import Path

import junitparser
import pytest
import xmlschema

from chaos.journal.evidence import load_evidence
from chaos.report.facts import Facts
from chaos.report.junit import to_junit
from tests.report.test_pages import evil, facts_of
from tests.verdict.story import CASES, JOURNALS, Story

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).with_name("junit.xsd")))


def stored(case: str) -> Facts:
    return facts_of(load_evidence(JOURNALS / case))


def suite_of(facts: Facts) -> junitparser.TestSuite:
    (suite,) = junitparser.JUnitXml.fromstring(to_junit(facts).encode())
    return suite


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_run_is_valid_for_jenkins_and_surefire(case: str) -> None:
    SCHEMA.validate(to_junit(stored(case)))


def test_names_from_outside_and_a_journal_without_a_beginning_are_valid_too() -> None:
    SCHEMA.validate(to_junit(evil()))
    SCHEMA.validate(to_junit(facts_of(Story(left_out=frozenset({"run_started"})).evidence())))


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_run_that_is_not_upheld_is_never_green_and_nothing_is_ever_skipped(case: str) -> None:
    facts = stored(case)
    suite = suite_of(facts)
    assert (suite.failures + suite.errors == 0) == (facts.verdict.exit_code == 0)
    assert suite.skipped == 0
    assert suite.tests == len([*suite]) == len(facts.verdict.preconditions) + len(facts.verdict.hypotheses)


def test_refuted_is_a_failure_inconclusive_an_error_upheld_a_pass() -> None:
    refuted = {case.name: [type(r) for r in case.result] for case in suite_of(stored("refuted_pile_on"))}
    unsure = {case.name: [type(r) for r in case.result] for case in suite_of(stored("inconclusive_too_few_requests"))}
    assert refuted["users are served"] == [junitparser.Failure]
    assert unsure["users are served"] == [junitparser.Error]
    assert refuted["nothing left behind"] == unsure["breaker opens"] == []


def test_the_suite_says_where_the_run_is_and_how_to_have_it_again() -> None:
    suite = suite_of(stored("refuted_pile_on"))
    known = {each.name.removeprefix("brownout."): each.value for each in suite.properties()}
    expected = {"run_dir": "runs/the-run", "seed": "7", "fingerprint": "sha256:5eed", "verdict": "refuted"}
    assert known.items() >= (expected | {"exit_code": "1", "report": "runs/the-run/report.html"}).items()
    assert (suite.timestamp, round(suite.time, 1)) == ("2026-12-01T09:00:00", 53.1)


def test_what_was_found_is_there_for_what_is_upheld_too() -> None:
    said = {case.name: case.system_out for case in suite_of(stored("upheld"))}
    assert said["users are served"] == "success_ratio: 100% (99.11% to 100%), wanted at least 99%"
    assert max(len(text) for text in said.values() if text) < 200
