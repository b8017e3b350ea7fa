"""Bad links as functions of time and packets: what is promised of each kind holds for any traffic."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.saboteurs.netfilter.links import (
    Answer,
    Doubling,
    Garbling,
    Link,
    Lossy,
    Narrow,
    Shuffling,
    Slow,
    link_of,
)
from chaos.saboteurs.netfilter.messages import LOCAL_IN, POST_ROUTING, Packet

HEAD = b"\x45" + bytes(19) + b"\x01\x02\x03\x04" + bytes(8) + b"\x50" + bytes(7)
"""IPv4 and TCP without options: 40 bytes."""


def packet(number: int, size: int = 100, hook: int = LOCAL_IN, flow: bytes = b"\x01\x02\x03\x04") -> Packet:
    return Packet(number, hook, 0, HEAD[:20] + flow + HEAD[24:] + bytes(max(0, size - 40)), size)


def met(link: Link, packets: Iterable[tuple[float, Packet]]) -> list[Answer]:
    return [answer for now, each in packets for answer in link.meet(now, each)]


def order(answers: Iterable[Answer]) -> list[int]:
    """Packets as they arrive: each by its first answer."""
    return list(dict.fromkeys(each.packet.id for each in sorted(answers, key=lambda a: a.at)))


@given(st.lists(st.floats(0, 0.1), max_size=50), st.floats(0.01, 1), st.floats(0, 1))
def test_a_slow_link_keeps_the_order_and_each_delay_in_its_bounds(
    gaps: list[float], delay_s: float, width: float
) -> None:
    jitter_s = delay_s * width
    times = list(itertools.accumulate(gaps))
    answers = met(Slow(random.Random(1), delay_s, jitter_s), zip(times, map(packet, itertools.count()), strict=False))
    assert [each.at for each in answers] == sorted(each.at for each in answers)
    for sent, each in zip(times, answers, strict=True):
        assert sent + delay_s - jitter_s - 1e-9 <= each.at
        assert each.at <= max(sent, *times[: each.packet.id + 1]) + delay_s + jitter_s + 1e-9


@pytest.mark.parametrize("burst", [1, 2, 5])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.4])
def test_a_lossy_link_loses_its_share_in_bursts_of_their_length(share: float, burst: int) -> None:
    count = 20_000
    link = Lossy(random.Random(f"{share}-{burst}"), share, burst)
    lost = [not each.passes for each in met(link, ((0.0, packet(number)) for number in range(count)))]
    bursts = [sum(1 for _ in group) for was_lost, group in itertools.groupby(lost) if was_lost]
    # A burst is a geometric length, so losses are fewer independent draws than packets.
    sigma = (share * (1 - share) * max(1, 2 * burst - 1) / count) ** 0.5
    assert sum(lost) / count == pytest.approx(share, abs=4 * sigma)
    wanted = burst if burst > 1 else 1 / (1 - share)
    assert sum(bursts) / len(bursts) == pytest.approx(wanted, rel=0.25)


def test_all_is_lost_when_the_share_is_all() -> None:
    assert {False} == {
        each.passes for each in met(Lossy(random.Random(1), 1.0, 1), ((0.0, packet(n)) for n in range(9)))
    }


def test_each_way_has_bursts_of_its_own() -> None:
    link = Lossy(random.Random(3), 0.5, 50)
    answers = met(link, ((0.0, packet(n, hook=(LOCAL_IN, POST_ROUTING)[n % 2])) for n in range(400)))
    up, down = ([a.passes for a in answers if a.packet.hook == hook] for hook in (LOCAL_IN, POST_ROUTING))
    assert up != down


def test_a_doubling_link_sends_its_share_twice() -> None:
    answers = met(Doubling(random.Random(1), 0.2), ((0.0, packet(n)) for n in range(10_000)))
    assert sum(each.twice for each in answers) / 10_000 == pytest.approx(0.2, abs=0.015)
    assert all(each.passes and each.data is None for each in answers)


@given(st.integers(40, 200), st.integers(0, 2**32))
def test_a_garbling_link_turns_one_bit_behind_the_heads_or_in_the_checksum(size: int, seed: int) -> None:
    sent = packet(1, size)
    (answer,) = Garbling(random.Random(seed), 1.0).meet(0.0, sent)
    assert answer.data is not None
    changed = [(at, a ^ b) for at, (a, b) in enumerate(zip(sent.data, answer.data, strict=True)) if a != b]
    ((at, bits),) = changed
    assert 1 == bits.bit_count()
    assert at >= 40 if size > 40 else at in (36, 37)


def test_a_held_packet_is_overtaken_by_as_many_as_it_should() -> None:
    link = Shuffling(random.Random(1), 1.0, by=2, at_most_s=1.0)
    first = link.meet(0.0, packet(0))
    link.share = 0.0
    answers = [*first, *met(link, ((0.01 * n, packet(n)) for n in range(1, 5)))]
    assert [1, 2, 0, 3, 4] == order(answers)


def test_packets_of_other_connections_do_not_count() -> None:
    link = Shuffling(random.Random(1), 1.0, by=1, at_most_s=1.0)
    first = link.meet(0.0, packet(0))
    link.share = 0.0
    answers = [*first, *met(link, ((0.01 * n, packet(n, flow=b"else")) for n in range(1, 4)))]
    assert [1, 2, 3, 0] == order(answers)


@given(st.lists(st.floats(0, 0.05), max_size=60), st.floats(0, 1), st.integers(1, 5), st.integers(0, 99))
def test_no_packet_is_lost_or_held_for_longer_than_allowed(gaps: list[float], share: float, by: int, seed: int) -> None:
    times = list(itertools.accumulate(gaps))
    link = Shuffling(random.Random(seed), share, by, at_most_s=0.02)
    answers = met(link, zip(times, map(packet, itertools.count()), strict=False))
    assert set(range(len(times))) == set(order(answers))
    first = {number: min(a.at for a in answers if a.packet.id == number) for number in range(len(times))}
    assert all(first[number] <= sent + 0.02 for number, sent in enumerate(times))


def test_a_narrow_link_carries_its_rate_and_no_more() -> None:
    answers = met(Narrow(10_000, 10**9), ((0.0, packet(n, 500)) for n in range(100)))
    assert [pytest.approx(0.05 * (n + 1)) for n in range(100)] == [each.at for each in answers]


def test_what_the_queue_cannot_hold_is_lost() -> None:
    answers = met(Narrow(10_000, 1_000), ((0.0, packet(n, 400)) for n in range(5)))
    assert [True, True, False, False, False] == [each.passes for each in answers]


def test_a_packet_that_is_larger_than_the_queue_passes_when_the_line_is_free() -> None:
    (answer,) = Narrow(10_000, 1_000).meet(0.0, packet(1, 60_000))
    assert (True, 6.0) == (answer.passes, answer.at)


def test_an_idle_line_saves_nothing_for_later() -> None:
    link = Narrow(10_000, 10**9)
    assert [0.05, 100.05, pytest.approx(100.1)] == [
        each.at for each in met(link, [(0.0, packet(1, 500)), (100.0, packet(2, 500)), (100.0, packet(3, 500))])
    ]


@pytest.mark.parametrize("name", ["lossy", "doubling", "garbling"])
def test_the_same_seed_hits_the_same_packets(name: str) -> None:
    given_ = {"share": 0.3, **({"burst": 3} if name == "lossy" else {})}
    runs = [met(link_of(name, given_, 7), ((0.0, packet(n)) for n in range(200))) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0] != met(link_of(name, given_, 8), ((0.0, packet(n)) for n in range(200)))
