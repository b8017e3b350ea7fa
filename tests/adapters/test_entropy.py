"""One stream per name, the same for the same seed everywhere."""

from __future__ import annotations

from chaos.adapters.entropy import SeededEntropy


def test_the_same_seed_and_name_give_the_same_draws_on_every_machine() -> None:
    assert SeededEntropy(7).stream("load/chat").randrange(10**6) == SeededEntropy(7).stream("load/chat").randrange(
        10**6
    )
    assert [SeededEntropy(7).stream("a").randrange(1000) for _ in range(2)] == [PINNED, PINNED]


def test_another_name_or_seed_gives_other_draws() -> None:
    draws = {SeededEntropy(seed).stream(name).random() for seed in (1, 2) for name in ("a", "b")}
    assert len(draws) == 4


def test_a_new_consumer_shifts_nobodys_draws() -> None:
    entropy = SeededEntropy(7)
    first = entropy.stream("a").random()
    entropy.stream("b").random()
    assert entropy.stream("a").random() == first


PINNED = 801
