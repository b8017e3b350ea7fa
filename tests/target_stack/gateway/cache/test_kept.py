"""Records survive the way to the cache and back."""

from __future__ import annotations

import json

import pytest

from target_stack.gateway.cache.index import Entry, unit
from target_stack.gateway.cache.kept import Record

REPLY = {"id": "1", "choices": [{"index": 0, "message": {"content": "Grüße"}, "finish_reason": "stop"}], "usage": None}


@pytest.mark.parametrize("entry", [None, Entry("s", "e", unit((3, 4)), ("how",))], ids=["no vector", "vector"])
def test_a_record_comes_back_as_it_went(entry: Entry | None) -> None:
    record = Record(REPLY, "doc-1", 60.5, entry)
    back = Record.from_bytes(record.to_bytes())
    assert (back.reply, back.documents, back.lifetime_s) == (REPLY, "doc-1", 60.5)
    assert (back.entry is None) is (entry is None)
    if entry:
        assert (back.entry.scope, back.entry.embedder, back.entry.telling) == ("s", "e", ("how",))
        assert back.entry.vector == pytest.approx((0.6, 0.8))


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", json.dumps({"version": 2}).encode()], ids=repr)
def test_what_is_not_ours_is_no_record(data: bytes) -> None:
    assert Record.from_bytes(data) is None
