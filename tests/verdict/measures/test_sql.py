"""A query is answered from the evidence alone, or refused with the place in its text; silence is no answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Span
from chaos.verdict import sql
from chaos.verdict.measures.sql import Sql
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import Bound, View
from chaos.verdict.windows import times_of
from tests.verdict.story import INJECT, LOAD_END, LOAD_START, STORM, Story, experiment

pytest.importorskip("duckdb", reason="pip install 'brownout[sql]'")
STORMY = Story(hurt=STORM, scar_s=0.0)
EVIDENCE = STORMY.evidence()


def ask(query: str, evidence: Evidence = EVIDENCE, window: str | None = None, **bound: float) -> Estimate:
    times = times_of(experiment(), evidence)
    return Sql(query).estimate(View(evidence, times, times.windows[window] if window else None, Bound(**bound)))


def refused(query: str) -> tuple[str, str]:
    """The headline and the stretch of the query that it points at."""
    found = Sql(query).misread()
    assert found is not None, query
    return found.headline, query[found.at : found.at + found.length]


def test_one_number_is_exact_and_rests_on_the_tables_that_were_asked() -> None:
    found = ask("select count(*) from requests where status = 500")
    assert ((75.0, 75.0), ("requests (1000 rows)",)) == (found.interval, found.records)


def test_a_window_narrows_what_is_asked() -> None:
    assert 300.0 == ask("select count(*) from requests", window="outage").value
    assert 0.0 == ask("select count(*) from requests where status = 500", window="baseline").value


def test_two_numbers_are_a_share_with_the_interval_of_a_share() -> None:
    found = ask("select count(*) filter (status = 500), count(*) from requests", window="outage", at_most=0.1)
    assert (0.25, 300) == (found.value, found.n)
    assert found.interval is not None
    assert 0.2 < found.interval[0] < 0.25 < found.interval[1] < 0.31
    assert "is no share" in (ask("select 3, 2 from requests limit 1").missing or "")


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("select count(*) from samples where first_token_s is null", 75.0),
        ("select round(max(ttft_s), 1) from requests where outcome = 'degraded'", 2.9),
        ("select count(*) from requests where answer_ok", 700.0),
        ("select max(value) from readings where series like 'vllm:num_requests_running%'", 2.0),
        ("select count(*) from events where name = 'breaker_opened' and dependency = 'vector-store'", 1.0),
        ("select end_s - start_s from windows where name = 'outage'", 15.0),
        ("select reverted_s - injected_s from faults where confirmed and gone and kind = 'process_kill'", 15.0),
        ("with bad as (select * from requests where status = 500) select count(distinct load) from bad", 1.0),
        ("select bool_and(final) from samples", 1.0),
    ],
)
def test_every_table_answers(query: str, value: float) -> None:
    assert value == ask(query).value


def test_spans_are_a_table_where_the_stack_keeps_them() -> None:
    call = Span("t" * 32, "a" * 16, "", "gateway", "callee", "chat", "", INJECT, INJECT + 1, "ok", 1, None, 7)
    evidence = replace(EVIDENCE, spans=Evidence.build(spans=[call]).spans)
    assert 7.0 == ask("select sum(output_tokens) from spans where prompt_tokens is null", evidence, "outage").value
    assert "there are no spans to ask" == ask("select count(*) from spans").missing


def test_no_row_several_rows_and_null_say_nothing() -> None:
    assert "the query gave no row" == ask("select status from requests where status = 418").missing
    assert "the query gave several rows" == ask("select status from requests").missing
    assert "the query gave NULL" == ask("select max(tokens) from requests where status = 418").missing
    assert "the query gave no finite number" == ask("select 1.0::double / 0 from requests limit 1").missing


def test_counting_nothing_where_nobody_looked_proves_nothing() -> None:
    deaf = replace(EVIDENCE, readings=Evidence.build().readings)
    assert "there are no readings to ask" == ask("select count(*) from readings", deaf).missing
    assert "nobody listened to the stack's events" == ask("select count(*) from events", deaf).missing
    assert "there are no requests to ask" == ask("select count(*) from requests", Evidence.build()).missing


def test_events_of_a_whole_run_are_those_of_its_load() -> None:
    """Before the first look of a run there is no load; what the stack tells before that is nobody's question."""
    beats = [ReadingRow(t, "gateway", "events_last", 0.0) for t in (LOAD_START, LOAD_END)]
    heard = replace(EVIDENCE, readings=Evidence.build(readings=beats).readings)
    assert 1.0 == ask("select count(*) from events where name = 'breaker_opened'", heard).value


@pytest.mark.parametrize(
    ("query", "headline", "place"),
    [
        ("select count(*) frm requests", "syntax error at or near `requests`", "requests"),
        ("select count(*) from requests where statuss = 1", "referenced column `statuss` not found", "statuss"),
        ("select count(*)\nfrom requests\nwhere load = 'é' and nope", "referenced column `nope` not found", "nope"),
        ("select count(*) from request", "the evidence has no table `request`", "request"),
        ("select count(*) from pg_class", "the evidence has no table `pg_class`", "pg_class"),
        ("select count(*) from '/etc/passwd'", "the evidence has no table `/etc/passwd`", "'/etc/passwd'"),
        ("select count(*) from read_text('/etc/passwd')", "`read_text` reads something else", "read_text"),
        ("select count(*) from duckdb_settings()", "`duckdb_settings` reads something else", "duckdb_settings()"),
        ("select count(*) from requests where random() < 0.5", "`random` does not answer the same", "random()"),
        ("select extract(epoch from now())", "`now` does not answer the same", "now()"),
        ("select current_date = date '2026-01-01'", "`current_date` does not answer the same", "current_date"),
        ("select length(current_setting('threads'))", "`current_setting` does not answer", "current_setting"),
        ("select extract(day from ago(interval 1 day))", "`ago` does not answer the same", "ago("),
        ("select count(*) from requests using sample 10%", "a random sample does not answer the same", "select"),
        ("delete from requests", "only a SELECT can be asked", "delete"),
        ("copy requests to 'x.csv'", "only a SELECT can be asked", "copy"),
        ("attach 'x.db'", "only a SELECT can be asked", "attach"),
        ("select count(*) from (summarize requests)", "only a SELECT can be asked", "select"),
        ("select 1; select 2", "more than one statement", "select 1; select 2"),
        ("-- nothing", "no statement", "-- nothing"),
        ("select outcome from requests", "`outcome` is VARCHAR, wanted a number", "select outcome"),
        ("select 1, 2, 3", "it gives 3 columns", "select 1, 2, 3"),
    ],
)
def test_what_is_no_question_to_the_evidence_is_refused_with_its_place(query: str, headline: str, place: str) -> None:
    said, where = refused(query)
    assert said.startswith(headline)
    assert where.startswith(place)
    assert len(said) <= 80


def test_a_query_that_is_refused_is_never_asked() -> None:
    found = ask("select count(*) from read_text('/etc/passwd')")
    assert (None, True) == (found.value, (found.missing or "").startswith("`read_text` reads something else"))


def test_a_query_without_end_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.verdict.sql.MOST_TIME_S", 0.3)
    endless = "with recursive t as (select 1 a union all select a + 1 from t) select count(*) from t"
    assert "the query took longer than 0.3s" == ask(endless).missing


def test_a_query_that_wants_too_much_memory_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sql._SEALED, "memory_limit", "24MiB")
    greedy = "select length(string_agg(repeat('x', 1000000), '')) from range(200)"
    assert "of memory" in (ask(greedy).missing or "")
