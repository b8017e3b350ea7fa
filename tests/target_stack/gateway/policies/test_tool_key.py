"""Under which key a tool is asked again."""

from __future__ import annotations

from target_stack.gateway.policies.tool_key import key_of


def test_all_tries_of_a_request_have_its_key() -> None:
    assert [key_of("per_request", "k", attempt) for attempt in (1, 2, 3)] == ["k", "k", "k"]


def test_the_mistake_gives_every_try_a_key_of_its_own() -> None:
    assert len({key_of("per_try", "k", attempt) for attempt in (1, 2, 3)}) == 3
