"""What clients do when an attempt ends."""

from __future__ import annotations

import pytest

from chaos.load.personas import ClientBehaviour, Ending, GiveUp, Resend, behaviour_of, next_move
from chaos.spec.model import Client
from chaos.units import Duration

HAPPY = behaviour_of(Client(persona="retry_happy"))


@pytest.mark.parametrize(
    ("persona", "expected"),
    [
        ("patient", ClientBehaviour(30.0, 0, 0.0)),
        ("impatient", ClientBehaviour(3.0, 0, 0.0)),
        ("retry_happy", ClientBehaviour(2.0, 3, 0.0)),
    ],
)
def test_a_persona_is_its_defaults(persona, expected):
    assert expected == behaviour_of(Client(persona=persona))


def test_every_key_overrides_the_persona():
    client = Client(persona="retry_happy", timeout=Duration(8), retries=0, backoff=Duration(0.5))
    assert ClientBehaviour(8.0, 0, 0.5) == behaviour_of(client)


@pytest.mark.parametrize(
    "ending",
    [
        Ending("failed", 500),
        Ending("failed", 502),
        Ending("failed", 0),
        Ending("failed", 200),  # the stream broke after the 200
        Ending("shed", 503),
        Ending("shed", 429),
        Ending("abandoned", 0),
    ],
)
def test_a_retry_happy_client_resends_at_once_after_server_trouble(ending):
    assert Resend(0.0) == next_move(HAPPY, 1, ending)


@pytest.mark.parametrize(
    "ending",
    [Ending("good", 200), Ending("degraded", 200), Ending("late", 200), Ending("failed", 400), Ending("failed", 404)],
)
def test_nobody_resends_after_an_answer_or_a_bad_request(ending):
    assert GiveUp() == next_move(HAPPY, 1, ending)


def test_what_is_indeterminate_is_not_sent_again():
    assert GiveUp() == next_move(HAPPY, 1, Ending("indeterminate", 0))


def test_three_resends_are_the_end():
    assert Resend(0.0) == next_move(HAPPY, 3, Ending("failed", 500))
    assert GiveUp() == next_move(HAPPY, 4, Ending("failed", 500))


def test_only_a_client_that_pauses_honours_retry_after():
    polite = ClientBehaviour(2.0, 3, 0.25)
    assert Resend(4.0) == next_move(polite, 1, Ending("shed", 503, retry_after_s=4.0))
    assert Resend(0.25) == next_move(polite, 1, Ending("shed", 503))
    assert Resend(0.0) == next_move(HAPPY, 1, Ending("shed", 503, retry_after_s=4.0))
