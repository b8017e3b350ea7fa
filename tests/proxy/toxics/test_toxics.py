"""Each toxic in virtual time: which bytes leave when."""

from __future__ import annotations

import pytest

from chaos.proxy.toxics import PER_REQUEST, TOXICS, TOXIPROXYS
from chaos.proxy.toxics.stub import End
from chaos.settings import settings_of
from tests.proxy.rig import Rig, toxic


def test_the_catalog_has_toxiproxys_kinds() -> None:
    kinds = ["bandwidth", "latency", "limit_data", "noop", "reset_peer", "slicer", "slow_close", "timeout"]
    assert [kind.kind for kind in TOXIPROXYS] == kinds


def test_every_setting_of_every_toxic_is_described_and_zero_by_default() -> None:
    for kind in TOXIPROXYS:
        for setting in settings_of(kind):
            assert setting.doc
            assert setting.default == 0
            assert setting.type is int


def test_every_kind_has_a_name_and_a_file_of_its_own() -> None:
    for kind in TOXICS:
        assert kind.__module__ == f"chaos.proxy.toxics.{kind.kind}"
        assert kind.go_name == f"{kind.kind.title().replace('_', '')}Toxic" or kind.kind == "reset_peer"
    assert len({kind.kind for kind in TOXICS}) == len(TOXICS)


def test_every_setting_of_a_toxic_on_requests_is_described_and_has_a_default_that_harms() -> None:
    for kind in PER_REQUEST:
        assert kind().problem() is None
        assert all(setting.doc for setting in settings_of(kind))


def test_latency_counts_from_the_receive_time_so_pipelined_chunks_overlap() -> None:
    rig = Rig(toxic("latency", latency=100))
    for n in range(5):
        rig.feed(n * 0.01, b"%d" % n)
    rig.run_until(1)
    assert rig.got == [(pytest.approx(n * 0.01 + 0.1), b"%d" % n) for n in range(5)]


def test_latency_does_not_delay_the_end_but_the_end_never_overtakes_data() -> None:
    rig = Rig(toxic("latency", latency=100))
    rig.feed(0, b"a")
    rig.feed(0.01, End.FIN)
    rig.run_until(1)
    assert rig.got == [(0.1, b"a"), (0.1, End.FIN)]


def test_jitter_is_uniform_over_whole_milliseconds_around_the_latency() -> None:
    rig = Rig(toxic("latency", latency=100, jitter=50))
    for n in range(2000):
        rig.feed(n * 1.0, b"x")
    rig.run_until(3000)
    delays = [round((when - n) * 1000) for n, (when, _) in enumerate(rig.got)]
    assert set(delays) == set(range(50, 150))
    assert 98 < sum(delays) / len(delays) < 101


def test_jitter_greater_than_latency_never_goes_back_in_time() -> None:
    rig = Rig(toxic("latency", latency=0, jitter=100))
    for n in range(50):
        rig.feed(n * 0.001, b"%02d" % n)
    rig.run_until(10)
    assert rig.data() == b"".join(b"%02d" % n for n in range(50))


def test_two_latencies_add_up_exactly() -> None:
    rig = Rig(toxic("latency", latency=300), toxic("latency", name="second", latency=100))
    rig.feed(0, b"x")
    rig.run_until(1)
    assert rig.got == [(0.4, b"x")]


@pytest.mark.parametrize("latency", [0, -50])
def test_no_latency_is_no_delay(latency: int) -> None:
    rig = Rig(toxic("latency", latency=latency))
    rig.feed(1, b"x")
    assert rig.got == [(1, b"x")]


def test_bandwidth_100_passes_200000_bytes_in_two_seconds_in_slices_of_100_ms() -> None:
    rig = Rig(toxic("bandwidth", rate=100))
    rig.feed(0, bytes(200_000))
    rig.run_until(10)
    assert rig.got[-1][0] == pytest.approx(2.0)
    assert [len(item) for _, item in rig.got if isinstance(item, bytes)] == [10_000] * 20


def test_bandwidth_keeps_its_rate_over_many_small_chunks() -> None:
    rig = Rig(toxic("bandwidth", rate=10))
    fed = 0
    while fed < 100:
        if rig.chain.room:
            rig.chain.feed(rig.now, bytes(1000))
            fed += 1
        else:
            rig.run_until(rig.chain.due or 0)
    rig.run_until(100)
    assert rig.got[-1][0] == pytest.approx(10.0), "100 kB at 10 kB/s"


@pytest.mark.parametrize("rate", [0, -7])
def test_bandwidth_without_a_rate_holds_everything_until_it_is_removed(rate: int) -> None:
    stall = toxic("bandwidth", rate=rate)
    rig = Rig(stall)
    rig.feed(0, b"held")
    rig.run_until(1000)
    assert rig.got == []
    assert rig.chain.due is None, "nothing to wake up for"
    rig.chain.remove(1000, stall, close_untouched=False)
    assert rig.got == [(1000, b"held")]


def test_slow_close_delays_the_end_only() -> None:
    rig = Rig(toxic("slow_close", delay=800))
    rig.feed(0, b"x")
    rig.feed(1, End.FIN)
    rig.run_until(5)
    assert rig.got == [(0, b"x"), (1.8, End.FIN)]


def test_an_update_starts_the_wait_of_a_slow_close_again() -> None:
    slow = toxic("slow_close", delay=800)
    rig = Rig(slow)
    rig.feed(0, End.FIN)
    rig.run_until(0.5)
    rig.chain.update(0.5, slow)
    rig.run_until(5)
    assert rig.got == [(1.3, End.FIN)]


def test_timeout_swallows_data_and_closes_after_its_time_without_a_chunk() -> None:
    rig = Rig(toxic("timeout", timeout=500))
    for n in range(4):
        rig.feed(n * 0.4, b"lost")
    rig.run_until(10)
    assert rig.got == [(pytest.approx(1.7), End.CLOSE)]


def test_timeout_zero_never_closes() -> None:
    rig = Rig(toxic("timeout", timeout=0))
    rig.feed(0, b"lost")
    rig.run_until(1e6)
    assert rig.got == []


def test_timeout_lets_the_end_of_the_stream_pass() -> None:
    rig = Rig(toxic("timeout", timeout=0))
    rig.feed(0, b"lost")
    rig.feed(1, End.FIN)
    assert rig.got == [(1, End.FIN)]


def test_an_update_of_a_timeout_starts_its_wait_again_and_does_not_close() -> None:
    hole = toxic("timeout", timeout=500)
    rig = Rig(hole)
    rig.run_until(0.4)
    rig.chain.update(0.4, hole)
    rig.run_until(10)
    assert rig.got == [(0.9, End.CLOSE)]


def test_reset_peer_waits_for_data_then_its_time_then_resets() -> None:
    rig = Rig(toxic("reset_peer", timeout=300))
    rig.run_until(5)
    assert rig.got == []
    rig.feed(5, b"lost")
    rig.run_until(10)
    assert rig.got == [(5.3, End.RESET)]


def test_nothing_stops_a_reset_that_is_on_its_way() -> None:
    reset = toxic("reset_peer", timeout=300)
    rig = Rig(reset)
    rig.feed(0, b"lost")
    rig.chain.update(0.1, reset)
    rig.chain.remove(0.2, reset, close_untouched=False)
    rig.run_until(1)
    assert rig.got == [(0.3, End.RESET)]


def test_limit_data_passes_its_bytes_and_closes() -> None:
    rig = Rig(toxic("limit_data", bytes=5))
    rig.feed(0, b"abc")
    rig.feed(1, b"defg")
    assert rig.got == [(0, b"abc"), (1, b"de"), (1, End.CLOSE)]


def test_limit_data_closes_as_soon_as_the_limit_is_reached() -> None:
    rig = Rig(toxic("limit_data", bytes=3))
    rig.feed(0, b"abc")
    assert rig.got == [(0, b"abc"), (0, End.CLOSE)]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_closes_on_the_first_data(limit: int) -> None:
    rig = Rig(toxic("limit_data", bytes=limit))
    rig.feed(0, b"abc")
    assert rig.got == [(0, End.CLOSE)]


def test_a_raised_limit_grants_only_the_difference() -> None:
    limit = toxic("limit_data", bytes=1500)
    rig = Rig(limit)
    rig.feed(0, bytes(1000))
    limit.attributes.bytes = 1800  # type: ignore[attr-defined]  # the protocol knows no kind's own settings
    rig.chain.update(0, limit)
    rig.feed(1, bytes(5000))
    assert len(rig.data()) == 1800
    assert rig.ends() == [(1, End.CLOSE)]


def test_slicer_cuts_into_pieces_with_a_pause_after_each() -> None:
    rig = Rig(toxic("slicer", average_size=1000, delay=20_000))
    rig.feed(0, bytes(8000))
    rig.run_until(1)
    assert rig.got == [(pytest.approx(n * 0.02), bytes(1000)) for n in range(8)]


def test_the_pause_follows_the_last_piece_too() -> None:
    rig = Rig(toxic("slicer", average_size=10, delay=20_000))
    rig.feed(0, b"a")
    rig.feed(0, b"b")
    rig.run_until(1)
    assert rig.got == [(0, b"a"), (0.02, b"b")]


@pytest.mark.parametrize(("average", "variation"), [(0, 0), (-5, -5), (1, 0), (10, 2), (10, 500), (3, 1)])
def test_slices_always_make_up_the_whole(average: int, variation: int) -> None:
    data = bytes(range(256)) * 16
    rig = Rig(toxic("slicer", average_size=average, size_variation=variation))
    rig.feed(0, data)
    rig.run_until(1)
    assert rig.data() == data
    assert max(len(item) for _, item in rig.got if isinstance(item, bytes)) <= max(1, average) + max(0, variation)


def test_noop_passes_everything_on() -> None:
    rig = Rig(toxic("noop"))
    rig.feed(0, b"x")
    rig.feed(1, End.FIN)
    assert rig.got == [(0, b"x"), (1, End.FIN)]
