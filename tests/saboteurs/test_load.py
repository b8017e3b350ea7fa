"""What strangers send: the same every time, in bunches where they shall, and never more than was ordered."""

from __future__ import annotations

from collections import Counter

from chaos.faults.grips.strangers import Crowd
from chaos.load.prompts import Prompt
from chaos.saboteurs.load import load_of, plan_of

PROMPTS = (Prompt("a", "What is a lamp?"), Prompt("b", "What is a kettle?"))


def dues(crowd: Crowd, seed: int = 1) -> list[float]:
    load = load_of(crowd.to_json(), "strangers-0")
    return [request.at_s for request in plan_of(load, PROMPTS, crowd.every_s, seed).requests]


def test_a_seed_gives_the_same_traffic_and_another_seed_another() -> None:
    assert dues(Crowd(20.0)) == dues(Crowd(20.0)) != dues(Crowd(20.0), seed=2)
    assert 150 < len(dues(Crowd(20.0))) < 250


def test_a_bunch_comes_in_one_moment_and_each_has_its_size() -> None:
    assert Counter(dues(Crowd(50.0, every_s=1.0))) == {float(second): 50 for second in range(10)}
    assert Counter(dues(Crowd(20.0, every_s=0.5))) == {half / 2: 10 for half in range(20)}


def test_a_client_is_as_patient_as_it_was_ordered_to_be() -> None:
    load = load_of(Crowd(5.0, prompt_words=1500, timeout_s=0.5, retries=3).to_json(), "strangers-0")
    assert (load.prompt_words, load.client.timeout, load.client.retries, load.client.backoff) == (1500, 0.5, 3, 0)
