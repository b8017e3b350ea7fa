"""Side effects, audit lines and permissions, joined to requests by their traces."""

from __future__ import annotations

import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Record, Sample
from chaos.verdict.measures.audit_gaps import AuditGaps
from chaos.verdict.measures.side_effects import SideEffects
from chaos.verdict.measures.unauthorised_calls import UnauthorisedCalls
from chaos.verdict.view import View

READ = 20.0


def sample(number, outcome="good", status=200):
    return Sample(
        load="tickets",
        request=number,
        attempt=1,
        final=True,
        intended_s=float(number),
        sent_s=float(number),
        first_token_s=float(number),
        end_s=number + 0.1,
        outcome=outcome,
        why="",
        status=status,
        served_by="tool",
        degraded="",
        tokens=1,
        gaps_s=(),
        answer_ok=None,
        trace_id=f"t{number}",
    )


def event(name, number, at=None, **fields):
    told = {"name": name, "trace_id": f"t{number}", "tool": "open_ticket", "at": number if at is None else at, **fields}
    return Record(0, 0.0, "event", told)


def effect(number, **fields):
    return event("side_effect", number, **fields)


def call(number, outcome="ok", permitted=True, **fields):
    return event("tool_call", number, outcome=outcome, permitted=permitted, **fields)


def estimate(measure, samples, records, read_at=READ, unread=0.0):
    beats = [ReadingRow(read_at, "tools", f"{page}_unread", unread) for page in ("ledger", "audit")]
    evidence = Evidence.build(records, samples, beats)
    return measure.estimate(View(evidence, None))  # the whole run, so no window is looked at


SAMPLES = [sample(1), sample(2), sample(3, "failed", 503)]
EFFECTS = [effect(1), effect(2), effect(3)]
CALLS = [call(1), call(2), call(3)]


def test_one_effect_for_each_answer_is_right_and_a_failed_request_may_have_had_its_own_or_not():
    for effects in (EFFECTS, EFFECTS[:2]):
        found = estimate(SideEffects("tickets"), SAMPLES, effects)
        assert (found.value, found.n) == (0.0, 3)


def test_an_effect_that_happened_again_counts_and_one_that_an_answer_made_up_too():
    found = estimate(SideEffects("tickets"), SAMPLES, [effect(1), effect(1), effect(1), effect(3)])
    assert found.value == 3.0
    assert found.detail == "2 done again, 1 told of and not found, in 3 requests"


def test_two_tools_in_one_trace_are_two_intents():
    assert estimate(SideEffects("tickets"), SAMPLES, [*EFFECTS, effect(1, tool="refund_order")]).value == 0.0


def test_effects_of_an_earlier_run_with_the_same_traces_do_not_count():
    assert estimate(SideEffects("tickets"), SAMPLES, [*EFFECTS, effect(1, at=-3.0)]).value == 0.0


def test_an_answer_or_an_effect_without_an_audit_line_is_a_gap():
    assert estimate(AuditGaps("tickets"), SAMPLES, [*EFFECTS, *CALLS]).value == 0.0
    found = estimate(AuditGaps("tickets"), SAMPLES, [*EFFECTS, call(2)])
    assert (found.value, found.n) == (2.0, 3)


def test_a_call_that_was_done_against_the_rules_counts_and_a_refused_one_does_not():
    against, refused = call(1, permitted=False), call(2, "permission_denied", permitted=False)
    found = estimate(UnauthorisedCalls(), SAMPLES, [against, refused, call(3)])
    assert (found.value, found.n) == (1.0, 3)


def test_only_the_calls_of_one_agent_can_be_looked_at():
    calls = [call(1, permitted=False, agent="support"), call(2, agent="gateway")]
    assert estimate(UnauthorisedCalls(agent="gateway"), SAMPLES, calls).value == 0.0


@pytest.mark.parametrize("measure", [SideEffects("tickets"), AuditGaps("tickets"), UnauthorisedCalls()])
@pytest.mark.parametrize(
    ("read_at", "unread", "why"),
    [(2.0, 0.0, "not read after the last request had ended"), (READ, 3.0, "nobody read the")],
)
def test_records_that_were_not_read_to_their_end_prove_nothing(measure, read_at, unread, why):
    found = estimate(measure, SAMPLES, [*EFFECTS, *CALLS], read_at, unread)
    assert found.value is None
    assert why in found.missing


def test_without_any_record_there_is_no_number():
    assert "no side effect" in estimate(SideEffects("tickets"), SAMPLES, []).missing
    assert "no request of other" in estimate(SideEffects("other"), SAMPLES, EFFECTS).missing
    assert "no tool answered" in estimate(AuditGaps("other"), SAMPLES, EFFECTS).missing
    assert "no call" in estimate(UnauthorisedCalls(), SAMPLES, EFFECTS).missing
