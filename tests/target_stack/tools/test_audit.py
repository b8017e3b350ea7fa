"""Masking, and the chain of audit lines."""

from __future__ import annotations

import copy
import sqlite3

import pytest

from target_stack.tools.audit import MASK, broken_at, masked


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "hunter2", "order": "B-1"}, {"password": MASK, "order": "B-1"}),
        ({"a": [{"api_key": {"x": 1}}]}, {"a": [{"api_key": MASK}]}),
        ("authorization is Bearer abc.def", f"authorization is Bearer {MASK}"),
        ("my card 4111 1111 1111 1111 please", f"my card {MASK}please"),
        ("sk-abcdefgh1234", f"sk-{MASK}"),
        ({"amount_cents": 4990, "open": True, "none": None}, {"amount_cents": 4990, "open": True, "none": None}),
        ("order B-1001, parcel P-7300", "order B-1001, parcel P-7300"),
    ],
)
def test_secrets_are_masked_and_the_rest_is_left(value, shown):
    assert masked(value) == shown


def test_what_is_logged_is_bounded_in_length_and_depth():
    deep = {}
    for _ in range(50):
        deep = {"x": deep}
    assert len(str(masked(deep))) < 100
    assert len(masked("x" * 10_000)) == 500


def filled(store):
    for number in range(5):
        store.append_audit({"tool": "t", "arguments": {"n": number}})
    return store.audit()[0]


def test_a_chain_holds_from_its_first_line_and_from_any_later_one(store):
    entries = filled(store)
    assert broken_at(entries) is None
    assert broken_at(entries[2:], entries[1]["hash"]) is None


def test_a_changed_line_and_a_missing_line_show(store):
    changed = copy.deepcopy(filled(store))
    changed[2]["arguments"]["n"] = 7
    assert broken_at(changed) == 3
    entries = store.audit()[0]
    assert broken_at(entries[:2] + entries[3:]) == 4


@pytest.mark.parametrize("statement", ["UPDATE audit SET line = '{}'", "DELETE FROM audit WHERE seq = 2"])
def test_the_database_itself_refuses_to_change_the_audit(store, statement):
    filled(store)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        store._db.execute(statement)
