"""The last seconds of a run."""

from __future__ import annotations

from chaos.journal.live import LiveWindow
from chaos.journal.record import Sample


def sample(end_s, outcome="good", load="chat", final=True):
    return Sample(load, 0, 1, final, end_s - 1, end_s - 1, None, end_s, outcome, "", 200, "", "", 0, (), None, "")


def window(*samples, keep_s=60.0):
    live = LiveWindow(keep_s)
    for one in samples:
        live.feed(one)
    return live


def test_success_is_good_and_degraded_over_all_but_indeterminate():
    live = window(*(sample(9.0, outcome) for outcome in ("good", "degraded", "late", "failed", "indeterminate")))
    assert live.success_ratio(10.0, 5.0) == 0.5


def test_only_the_last_seconds_count():
    live = window(sample(1.0, "failed"), sample(5.0, "failed"), sample(5.1), sample(9.9))
    assert live.success_ratio(10.0, 5.0) == 1.0
    assert live.counts(10.0, 20.0) == {"good": 2, "failed": 2}


def test_one_load_can_be_asked_for():
    live = window(sample(9.0, "failed", "a"), sample(9.0, "good", "b"))
    assert (live.success_ratio(10.0, 5.0, "a"), live.success_ratio(10.0, 5.0, "b")) == (0.0, 1.0)


def test_nothing_known_is_none_not_a_ratio():
    assert window().success_ratio(10.0, 5.0) is None
    assert window(sample(9.0, "indeterminate")).success_ratio(10.0, 5.0) is None


def test_attempts_that_are_not_final_do_not_count():
    assert window(sample(9.0, "failed", final=False)).recent(10.0, 5.0) == ()


def test_old_samples_are_forgotten():
    live = window(*(sample(float(n)) for n in range(100)), keep_s=10.0)
    assert len(live.recent(99.0, 1000.0)) == 11
