"""A row of toxics that is edited while bytes are in flight, in virtual time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics.stub import COARSE, GRAIN, End
from tests.proxy.rig import Rig, toxic


def test_an_update_releases_what_is_held_and_treats_the_rest_by_the_new_settings() -> None:
    slow = toxic("latency", latency=1000)
    rig = Rig(slow)
    rig.feed(0, b"first")
    rig.feed(0, b"second")
    slow.attributes.latency = 300  # type: ignore[attr-defined]  # the protocol knows no kind's own settings
    rig.run_until(0.1)
    rig.chain.update(0.1, slow)
    rig.run_until(5)
    assert rig.got == [(0.1, b"first"), (0.3, b"second")]


def test_removal_releases_everything_in_order() -> None:
    slow = toxic("latency", latency=1000)
    rig = Rig(slow)
    for n in range(5):
        rig.feed(n * 0.01, b"%d" % n)
    rig.feed(0.05, End.FIN)
    rig.run_until(0.1)
    rig.chain.remove(0.1, slow, close_untouched=False)
    assert rig.got == [(0.1, b"0"), (0.1, b"1"), (0.1, b"2"), (0.1, b"3"), (0.1, b"4"), (0.1, End.FIN)]


def test_removing_the_first_of_two_hands_its_bytes_to_the_second() -> None:
    first, second = toxic("bandwidth", rate=0), toxic("latency", latency=100)
    rig = Rig(first, second)
    rig.feed(0, b"held")
    rig.run_until(1)
    rig.chain.remove(1, first, close_untouched=False)
    rig.run_until(5)
    assert rig.got == [(1.1, b"held")]


def test_a_toxic_added_later_comes_last_and_does_not_touch_what_has_passed() -> None:
    rig = Rig()
    rig.feed(0, b"a")
    rig.chain.append(0.5, toxic("latency", latency=100))
    rig.feed(1, b"b")
    rig.run_until(5)
    assert rig.got == [(0, b"a"), (1.1, b"b")]


def test_what_a_closing_toxic_let_through_is_still_delayed_by_those_after_it() -> None:
    rig = Rig(toxic("limit_data", bytes=100), toxic("latency", latency=300))
    rig.feed(0, bytes(500))
    rig.run_until(5)
    assert rig.got == [(0.3, bytes(100)), (0.3, End.CLOSE)]


def test_a_stub_that_is_busy_presses_back_on_the_sender() -> None:
    rig = Rig(toxic("bandwidth", rate=1))
    rig.feed(0, bytes(1000))
    assert rig.chain.room
    rig.feed(0, bytes(1000))
    assert not rig.chain.room, "one chunk in work, one waiting"
    rig.run_until(1)
    assert rig.chain.room


def test_latency_buffers_1024_chunks_before_it_presses_back() -> None:
    rig = Rig(toxic("latency", latency=1000))
    fed = 0
    while rig.chain.room:
        rig.feed(0, b"x")
        fed += 1
    assert fed == 1025, "one in work, 1024 waiting"


def test_a_receiver_that_is_full_presses_back_and_loses_nothing() -> None:
    rig = Rig(toxic("latency", latency=100))
    rig.full = True
    rig.feed(0, b"a")
    rig.feed(0, b"b")
    rig.run_until(1)
    assert rig.got == [(0.1, b"a")]
    assert rig.chain.due is None, "no busy waiting for a receiver that does not read"
    rig.full = False
    rig.chain.resume(1)
    assert rig.got == [(0.1, b"a"), (1, b"b")]


def test_a_full_receiver_makes_no_burst_of_what_a_rate_has_promised() -> None:
    rig = Rig(toxic("bandwidth", rate=10))
    rig.full = True
    rig.feed(0, bytes(4000))
    rig.run_until(5)
    rig.full = False
    rig.chain.resume(5)
    rig.run_until(10)
    assert [when for when, _ in rig.got] == [0.1, 5, 5.1, 5.2]


def test_toxicity_zero_touches_nothing_and_one_touches_all() -> None:
    assert not any(_touched(toxicity=0, seed=seed) for seed in range(50))
    assert all(_touched(toxicity=1, seed=seed) for seed in range(50))


def test_toxicity_is_the_share_of_links_within_three_sigma() -> None:
    touched = sum(_touched(toxicity=0.3, seed=seed) for seed in range(2000))
    assert abs(touched - 600) < 3 * (2000 * 0.3 * 0.7) ** 0.5


def _touched(toxicity: float, seed: int) -> bool:
    rig = Rig(toxic("latency", toxicity, latency=100), seed=seed)
    rig.feed(0, b"x")
    return not rig.got


def test_an_update_throws_the_dice_again() -> None:
    half = toxic("latency", 0.5, latency=100)
    rig = Rig(half)
    drawn = set()
    for _ in range(30):
        rig.chain.update(0, half)
        drawn.add(rig.chain.stages[0].active)
    assert drawn == {True, False}


def test_the_same_seed_draws_the_same_delays() -> None:
    def arrivals() -> list[float]:
        rig = Rig(toxic("latency", latency=50, jitter=50), seed=9)
        for n in range(20):
            rig.feed(n * 0.01, b"x")
        rig.run_until(5)
        return [when for when, _ in rig.got]

    assert arrivals() == arrivals()


def test_removing_a_timeout_closes_only_links_on_which_it_was_active() -> None:
    hole = toxic("timeout", toxicity=0)
    rig = Rig(hole)
    rig.chain.remove(1, hole, close_untouched=False)
    assert rig.got == []
    assert rig.chain.plain
    strict = Rig(hole)
    strict.chain.remove(1, hole, close_untouched=True)
    assert strict.got == [(0, End.CLOSE)]


def test_hits_count_what_an_active_toxic_saw() -> None:
    slow = toxic("latency", latency=1)
    rig = Rig(slow)
    rig.feed(0, b"abc")
    rig.feed(0, b"de")
    rig.feed(1, End.FIN)
    assert (slow.hits.connections, slow.hits.chunks, slow.hits.bytes, slow.hits.ends) == (1, 2, 5, 1)


_LOSSLESS = st.sampled_from(
    [
        ("latency", {"latency": 30, "jitter": 10}),
        ("bandwidth", {"rate": 2}),
        ("slicer", {"average_size": 7, "size_variation": 3, "delay": 500}),
        ("noop", {}),
        ("slow_close", {"delay": 10}),
    ]
)
_ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["feed", "wait", "add", "update", "remove", "full", "free"]), st.integers(0, 20), _LOSSLESS
    ),
    max_size=40,
)


@given(_ACTIONS)
@settings(max_examples=150, deadline=None)
def test_whatever_is_edited_and_whenever_no_byte_is_lost_or_reordered(
    actions: list[tuple[str, int, tuple[str, dict[str, int]]]],
) -> None:
    rig = Rig()
    here: list[Toxic] = []
    sent = b""
    for n, (what, amount, (kind, attributes)) in enumerate(actions):
        if what == "feed" and rig.chain.room:
            data = bytes([n]) * (amount + 1)
            sent += data
            rig.feed(rig.now, data)
        elif what == "wait":
            rig.run_until(rig.now + amount / 100)
        elif what == "add":
            here.append(toxic(kind, 0.7, f"t{n}", **attributes))
            rig.chain.append(rig.now, here[-1])
        elif what == "update" and here:
            rig.chain.update(rig.now, here[amount % len(here)])
        elif what == "remove" and here:
            rig.chain.remove(rig.now, here.pop(amount % len(here)), close_untouched=False)
        elif what in ("full", "free"):
            rig.full = what == "full"
            if not rig.full:
                rig.chain.resume(rig.now)
    rig.full = False
    rig.chain.resume(rig.now)
    rig.feed(rig.now, End.FIN)
    rig.run_until(rig.now + 1000)
    assert rig.data() == sent
    assert [end for _, end in rig.ends()] == [End.FIN]
    assert rig.got[-1][1] is End.FIN


def test_chunks_are_coarse_only_where_it_makes_no_difference_and_little_is_on_the_way() -> None:
    slow = toxic("latency", latency=1000)
    assert COARSE == Rig(slow).chain.grain
    assert GRAIN == Rig(slow, toxic("slicer", average_size=10)).chain.grain
    rig = Rig(slow)
    for _ in range(200):
        rig.feed(0, b"waits")
    assert GRAIN == rig.chain.grain
