"""An answer names what it rests on: the requests that speak against it, the slowest ones, the lines of the journal."""

from chaos.verdict.document import from_json, to_json
from chaos.verdict.judge import judge
from tests.verdict.story import CASES, experiment


def records_of(case: str, hypothesis: str) -> tuple[str, ...]:
    verdict = judge(experiment(), CASES[case].evidence())
    return next(h.records for h in verdict.hypotheses if h.name == hypothesis)


def test_a_share_names_the_first_requests_that_speak_against_it() -> None:
    assert records_of("refuted_pile_on", "users are served")[0] == (
        f"request chat/300 (failed: status_500, trace {300:032x})"
    )
    assert records_of("upheld", "users are served") == ()


def test_a_wait_names_the_slowest() -> None:
    (first, *_) = records_of("upheld", "no slow failure")
    assert first.startswith("request chat/")


def test_an_event_names_its_line_of_the_journal() -> None:
    assert records_of("upheld", "breaker opens") == ("journal 6 (breaker_opened at 16.80s)",)


def test_records_survive_the_way_through_verdict_json_and_may_be_missing_in_old_ones() -> None:
    verdict = judge(experiment(), CASES["refuted_pile_on"].evidence())
    document = to_json(verdict)
    assert from_json(document).hypotheses[0].records == verdict.hypotheses[0].records
    del document["hypotheses"][0]["records"]
    assert from_json(document).hypotheses[0].records == ()
