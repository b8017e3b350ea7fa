"""References in answers are rewritten, each damage in its way; everything else passes as it came."""

from __future__ import annotations

import json

import pytest

from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics.http_rewrite_kv_reference import FAR_BLOCK
from tests.proxy.rig import toxic
from tests.proxy.traffic.duplex import REQUEST, Duplex

KIND = "http_rewrite_kv_reference"


def reference(number: int) -> dict[str, object]:
    return {"remote_engine_id": "abcd", "remote_block_ids": [[number]], "remote_request_id": f"r{number}"}


def answer(body: dict[str, object]) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)


def through(harm: Toxic, *answers: bytes) -> list[dict[str, object]]:
    """The bodies of the answers on the client's side, their lengths believed."""
    duplex = Duplex(harm)
    for each in answers:
        duplex.ask(REQUEST)
        duplex.answer(each)
        duplex.run_until(duplex.now + 1)
    found, left = [], duplex.seen()
    while left:
        head, _, left = left.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        found.append(json.loads(left[:length]))
        left = left[length:]
    return found


@pytest.mark.parametrize(
    ("damage", "third"),
    [
        ("swapped", reference(2)),
        ("expired", reference(1)),
        ("stale", {**reference(3), "remote_engine_id": "0000"}),
        ("out_of_range", {**reference(3), "remote_block_ids": [[FAR_BLOCK]]}),
    ],
)
def test_a_damage_gives_a_prompt_another_reference(damage: str, third: dict[str, object]) -> None:
    harm = toxic(KIND, damage=damage)
    answers = [answer({"id": f"a{n}", "kv_transfer_params": reference(n)}) for n in (1, 2, 3)]
    found = through(harm, *answers)[2]
    assert (found["id"], found["kv_transfer_params"]) == ("a3", third)


def test_the_count_is_of_references_that_were_really_changed() -> None:
    harm = toxic(KIND)
    through(harm, *(answer({"kv_transfer_params": reference(n)}) for n in (1, 2, 3)))
    assert harm.hits.requests == 2  # the first prompt has none before it


@pytest.mark.parametrize("body", [{"choices": []}, {"kv_transfer_params": None}])
def test_an_answer_without_a_reference_passes_as_it_is(body: dict[str, object]) -> None:
    harm = toxic(KIND, damage="stale")
    assert through(harm, answer(body)) == [body]
    assert harm.hits.requests == 0


def test_an_unknown_damage_is_refused() -> None:
    assert "is none of swapped" in (toxic(KIND, damage="lost").attributes.problem() or "")
