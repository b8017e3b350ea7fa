"""A reply put together from its stream says the same as the stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.assemble import Assembler


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=5)), min_size=1))
def test_text_of_every_choice_is_the_sum_of_its_pieces(pieces: list[tuple[int, str]]) -> None:
    assembler = Assembler()
    for index, text in pieces:
        assembler.add({"id": "x", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": None}]})
    wanted = {index: "".join(text for place, text in pieces if place == index) for index, _ in pieces}
    assert {one["index"]: one["message"]["content"] for one in assembler.reply()["choices"]} == wanted


def test_tool_calls_are_joined_by_their_index() -> None:
    assembler = Assembler()
    for call in (
        {"index": 0, "id": "call-1", "function": {"name": "order_status", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"order"'}},
        {"index": 0, "function": {"arguments": ": 7}"}},
    ):
        assembler.add({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]})
    function = {"name": "order_status", "arguments": '{"order": 7}'}
    assert assembler.reply()["choices"][0]["message"]["tool_calls"] == [
        {"id": "call-1", "type": "function", "function": function}
    ]


def test_head_usage_and_reasons_are_kept() -> None:
    assembler = Assembler()
    assembler.add({"id": "x", "created": 5, "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]})
    assembler.add({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": 7}]})
    assembler.add({"choices": [], "usage": {"total_tokens": 2}, "system_fingerprint": "f"})
    reply = assembler.reply()
    assert (reply["id"], reply["created"], reply["model"], reply["system_fingerprint"]) == ("x", 5, "m", "f")
    assert (reply["usage"], reply["choices"][0]["finish_reason"]) == ({"total_tokens": 2}, "stop")
    assert reply["choices"][0]["stop_reason"] == 7
