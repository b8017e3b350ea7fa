"""One call from identity to audit, whatever instant the process dies at."""

from __future__ import annotations

import os
import signal
import sqlite3

import pytest
from shop import AGENTS, open_store

from target_stack.tools.audit import broken_at, open_log
from target_stack.tools.desk import Desk, ToolCall
from target_stack.tools.permissions import Register
from target_stack.tools.refusal import ToolError

TICKET = {"order": "B-1003", "subject": "It leaks."}


def desk_of(store, audit="in_transaction", enforcement="enforce"):
    return Desk(store, Register.from_config(AGENTS), open_log(audit, store), enforcement)


def call(tool="open_ticket", arguments=TICKET, who="support-token", key="k1", deadline=None):
    return ToolCall(tool, arguments, who, key, trace_id="t1", deadline=deadline, wall=1.0, mono=2.0)


def refusal(desk, asked):
    with pytest.raises(ToolError) as refused:
        desk.use(asked)
    return refused.value.code


def outcomes(store):
    return [(line["agent"], line["tool"], line["outcome"], line["permitted"]) for line in store.audit()[0]]


def test_the_same_key_gives_the_first_result_however_often_it_is_sent(store):
    desk = desk_of(store)
    first, again = desk.use(call()), desk.use(call())
    assert (first.replayed, again.replayed, again.result) == (False, True, first.result)
    assert len(store.ledger()[0]) == 1


def test_another_key_is_another_side_effect(store):
    desk = desk_of(store)
    assert [desk.use(call(key=key)).result["ticket"] for key in ("k1", "k2")] == ["T-1", "T-2"]


def test_keys_of_two_agents_do_not_meet(store):
    desk = desk_of(store)
    desk.use(call())
    refund = call("refund_order", {"order": "B-1001", "amount_cents": 100}, "approver-token")
    assert desk.use(refund).replayed is False


def test_a_key_cannot_be_used_for_another_call(store):
    desk = desk_of(store)
    desk.use(call())
    assert refusal(desk, call(arguments={**TICKET, "subject": "Other."})) == "conflict"


@pytest.mark.parametrize("key", [None, "", "a b", "x" * 129, "ü"])
def test_a_tool_that_acts_needs_a_key_of_the_right_form(store, key):
    assert refusal(desk_of(store), call(key=key)) == "invalid_argument"
    assert store.ledger() == ([], 0)


def test_a_tool_that_reads_needs_no_key(store):
    assert desk_of(store).use(call("order_status", {"order": "B-1001"}, key=None)).result["status"] == "shipped"


def test_a_refused_call_can_be_made_right_under_its_key(store):
    desk = desk_of(store)
    assert refusal(desk, call(arguments={**TICKET, "order": "B-9999"})) == "not_found"
    assert desk.use(call()).replayed is False


@pytest.mark.parametrize(
    ("asked", "code", "agent"),
    [
        (call(who="stolen"), "unauthenticated", "unknown"),
        (call(who=""), "unauthenticated", "unknown"),
        (call("refund_order", {"order": "B-1001", "amount_cents": 1}), "permission_denied", "support"),
        (
            call("refund_order", {"order": "B-1002", "amount_cents": 5001}, "approver-token"),
            "permission_denied",
            "approver",
        ),
        (call("order_status", {"order": "B-1002"}, "kiosk-token"), "permission_denied", "kiosk"),
        (call("order_state", {}), "unknown_tool", "support"),
        (call("order_status", {"order": 7}), "invalid_argument", "support"),
        (call(deadline=2.0), "deadline_exceeded", "support"),
    ],
)
def test_a_refusal_does_nothing_and_is_written_down(store, asked, code, agent):
    assert refusal(desk_of(store), asked) == code
    assert outcomes(store) == [(agent, asked.tool, code, False)]
    assert store.ledger() == ([], 0)


def test_a_line_says_who_what_with_which_arguments_and_what_came_of_it(store):
    desk_of(store).use(call())
    (line,) = store.audit()[0]
    assert line.pop("hash")
    assert line == {
        "seq": 1,
        "wall": 1.0,
        "mono": 2.0,
        "agent": "support",
        "tool": "open_ticket",
        "arguments": TICKET,
        "key": "k1",
        "trace_id": "t1",
        "permitted": True,
        "outcome": "ok",
        "result": {"ticket": "T-1", "order": "B-1003", "status": "open"},
    }


def test_a_replay_has_a_line_of_its_own(store):
    desk = desk_of(store)
    desk.use(call())
    desk.use(call())
    assert [outcome for *_, outcome, _ in outcomes(store)] == ["ok", "replayed"]


def test_rules_that_only_report_let_everybody_through_and_say_so(store):
    desk = desk_of(store, enforcement="report")
    assert desk.use(call("refund_order", {"order": "B-1001", "amount_cents": 1})).result["refund"] == "R-1"
    assert desk.use(call(who="stolen", key="k2")).result["ticket"] == "T-1"
    assert outcomes(store) == [("support", "refund_order", "ok", False), ("unknown", "open_ticket", "ok", False)]


def test_a_deferred_line_is_lost_with_the_process_and_the_side_effect_is_not(tmp_path):
    store = open_store(tmp_path / "t.sqlite")
    desk_of(store, audit="deferred").use(call())
    store.close()  # nothing was flushed, as after a SIGKILL
    store = open_store(tmp_path / "t.sqlite")
    assert (len(store.ledger()[0]), store.audit()[0]) == (1, [])
    store.close()


def test_deferred_lines_are_there_after_a_flush(store):
    desk = desk_of(store, audit="deferred")
    desk.use(call())
    assert refusal(desk, call(key=None)) == "invalid_argument"
    desk.flush()
    assert [outcome for *_, outcome, _ in outcomes(store)] == ["ok", "invalid_argument"]


def dies_before_statement(number, path):
    """Run one call in a fork that SIGKILLs itself before its statement of this number; whether it died."""
    pid = os.fork()
    if pid == 0:
        store, seen = open_store(path), 0

        def count(_):
            nonlocal seen
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

        store._db.set_trace_callback(count)
        desk_of(store).use(call())
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_death_before_any_statement_leaves_all_of_a_call_or_nothing_and_asking_again_ends_with_one_effect(tmp_path):
    number = 0
    while True:
        number += 1
        path = tmp_path / f"{number}.sqlite"
        died = dies_before_statement(number, path)
        store = open_store(path)
        done, told = len(store.ledger()[0]), len(store.audit()[0])
        assert (done, told) in ((0, 0), (1, 1)), f"before statement {number}"
        assert store._db.execute("SELECT count(*) FROM tickets").fetchone()[0] == done
        desk_of(store).use(call())
        assert len(store.ledger()[0]) == 1
        assert broken_at(store.audit()[0]) is None
        store.close()
        if not died:
            break
    assert number > 8  # begin, look up, insert, insert, insert, commit and their company were all died before


def test_a_store_that_fails_refuses_the_call_without_a_half_of_it(store):
    store._db.execute("DROP TABLE audit")
    with pytest.raises(sqlite3.OperationalError):
        desk_of(store).use(call())
    assert store.ledger()[0] == []
    assert store._db.execute("SELECT count(*) FROM tickets").fetchone()[0] == 0
