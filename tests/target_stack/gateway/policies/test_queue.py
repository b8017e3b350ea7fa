"""The queue is bounded, sheds instead of answering too late, prefers interactive work and starves nobody."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from reference_queue import mismatch

from target_stack.gateway.policies.queue import AdmissionQueue, QueueSettings, Shed, ShedWatch

RULES = QueueSettings(
    capacity=4,
    wait_s=1.0,
    backed_up_wait_s=0.25,
    backed_up_after_s=0.5,
    deadline_share=1.0,
    batch_wait_s=5.0,
    batch_aging_s=0.5,
    batch_share=0.25,
)
FAR = 1e9


def test_the_queue_does_what_an_independent_model_recomputes_from_its_history() -> None:
    """A sample; `make soak SOAK=policies` plays 100,000 sequences."""
    assert [] == [why for seed in range(2000) if (why := mismatch(seed))]


def test_first_come_first_served_within_a_class() -> None:
    queue = AdmissionQueue(RULES)
    for ticket in "abc":
        assert queue.offer(0.0, ticket, "interactive", FAR) == []
    assert [queue.take(0.0) for _ in range(4)] == ["a", "b", "c", None]


def test_exactly_the_capacity_waits() -> None:
    queue = AdmissionQueue(RULES)
    refused = [queue.offer(0.0, ticket, "interactive", FAR) for ticket in range(7)]
    assert refused == [[]] * 4 + [[Shed(4, "queue_full")], [Shed(5, "queue_full")], [Shed(6, "queue_full")]]


def test_interactive_goes_before_batch() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "batch", "batch", FAR)
    queue.offer(0.0, "user", "interactive", FAR)
    assert queue.take(0.0) == "user"


def test_a_full_queue_displaces_its_youngest_batch_work_for_a_user() -> None:
    queue = AdmissionQueue(RULES)
    for ticket in range(4):
        queue.offer(0.0, ticket, "batch", FAR)
    assert queue.offer(0.0, "user", "interactive", FAR) == [Shed(3, "displaced")]
    assert queue.offer(0.0, 9, "batch", FAR) == [Shed(9, "queue_full")]


def test_aged_batch_gets_its_share_of_starts_and_not_more() -> None:
    queue = both_classes_waiting(QueueSettings(capacity=10_000, wait_s=FAR, batch_wait_s=FAR, batch_share=0.25))
    kinds = [queue.take(10.0)[0] for _ in range(1000)]  # type: ignore[index]  # tickets here are pairs
    assert kinds.count("batch") == 250


def both_classes_waiting(rules: QueueSettings) -> AdmissionQueue:
    queue = AdmissionQueue(rules)
    for ticket in range(1000):
        queue.offer(0.0, ("batch", ticket), "batch", FAR)
        queue.offer(0.0, ("user", ticket), "interactive", FAR)
    return queue


def test_batch_that_may_not_start_lets_users_pass() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "batch", "batch", FAR)
    assert queue.take(9.0, batch=False) is None
    queue.offer(9.0, "user", "interactive", FAR)
    assert queue.take(9.0, batch=False) == "user"
    assert queue.take(9.0, batch=True) == "batch"


def test_with_one_class_nobody_goes_first() -> None:
    queue = AdmissionQueue(QueueSettings(classes="one"))
    queue.offer(0.0, "batch", "batch", FAR)
    queue.offer(0.0, "user", "interactive", FAR)
    assert [queue.take(0.0), queue.take(0.0)] == ["batch", "user"]


def test_a_ticket_that_waited_past_its_limit_is_shed() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "a", "interactive", FAR)
    assert queue.next_expiry() == 1.0
    assert queue.expire(0.2) == []
    assert queue.expire(1.0) == [Shed("a", "waited_too_long")]


def moving(starts: int, every_s: float, rules: QueueSettings) -> AdmissionQueue:
    """A queue that has stood from 0 and has been served at a steady pace; two users are still in line."""
    queue = AdmissionQueue(rules)
    for ticket in range(starts + 3):
        queue.offer(0.0, ticket, "interactive", FAR)
    for number in range(starts + 1):
        queue.take(number * every_s)
    return queue


def test_a_standing_line_takes_in_only_who_will_hardly_wait() -> None:
    rules = QueueSettings(wait_s=1.0, backed_up_wait_s=0.25, backed_up_after_s=0.5)
    young, standing = moving(2, 0.2, rules), moving(3, 0.2, rules)
    assert young.offer(0.4, "new", "interactive", FAR) == []  # 0.4 s is fine while a burst is absorbed
    assert standing.offer(0.6, "new", "interactive", FAR) == [Shed("new", "wait_too_long")]
    standing.take(0.8)
    assert standing.offer(0.8, "new", "interactive", FAR) == []  # one ahead: 0.2 s


def test_who_is_in_line_keeps_the_limit_he_came_in_with() -> None:
    queue = moving(3, 0.2, QueueSettings(wait_s=1.0, backed_up_wait_s=0.01, backed_up_after_s=0.1))
    assert queue.expire(0.99) == []
    assert queue.next_expiry() == 1.0


def test_a_line_that_has_stopped_does_not_look_fast() -> None:
    queue = moving(3, 0.01, QueueSettings(wait_s=1.0, backed_up_wait_s=0.05, backed_up_after_s=0.1))
    assert queue.offer(0.13, "soon", "interactive", FAR) == [Shed("soon", "wait_too_long")]
    assert moving(3, 0.01, QueueSettings(backed_up_after_s=9.0)).offer(0.13, "soon", "interactive", FAR) == []


def test_a_start_without_waiting_says_nothing_about_the_pace_of_the_line() -> None:
    queue = AdmissionQueue(QueueSettings(wait_s=1.0))
    queue.started_at_once(0.0)
    for ticket in range(3):
        queue.offer(10.0, ticket, "interactive", FAR)
    queue.take(10.0)
    assert queue.offer(10.0, "new", "interactive", FAR) == []  # the ten seconds before were idle


def test_waiting_uses_up_only_a_share_of_what_the_deadline_leaves() -> None:
    queue = AdmissionQueue(QueueSettings(deadline_share=0.5))
    queue.offer(0.0, "a", "interactive", 0.4)
    assert queue.expire(0.1) == []
    assert queue.expire(0.2) == [Shed("a", "waited_too_long")]


def test_who_would_wait_past_his_share_of_the_deadline_is_refused_at_the_door() -> None:
    queue = moving(2, 0.2, QueueSettings(wait_s=10.0, backed_up_wait_s=10.0, deadline_share=0.5))  # two ahead: 0.4 s
    assert queue.offer(0.4, "hurried", "interactive", 0.4 + 0.7) == [Shed("hurried", "wait_too_long")]
    assert queue.offer(0.4, "patient", "interactive", 0.4 + 0.9) == []


def test_a_line_of_batch_work_does_not_make_users_wait_or_leave() -> None:
    queue = AdmissionQueue(RULES)
    for ticket in range(3):
        queue.offer(0.0, ticket, "batch", FAR)
    assert queue.offer(4.0, "user", "interactive", FAR) == []
    assert queue.take(4.0, batch=False) == "user"


@pytest.mark.parametrize("share", [1.0, 1.5])
def test_a_share_that_leaves_users_nothing_is_refused_at_start(share: float) -> None:
    with pytest.raises(ValueError, match="batch_share must be below 1"):
        QueueSettings(batch_share=share)


def test_clearing_sends_everybody_away_once() -> None:
    queue = AdmissionQueue(RULES)
    for ticket, priority in (("b", "batch"), ("u", "interactive"), ("v", "interactive")):
        queue.offer(0.0, ticket, priority, FAR)  # type: ignore[arg-type]  # a word of Priority
    assert queue.clear() == ["u", "v", "b"]
    assert (len(queue), queue.next_expiry(), queue.take(0.0)) == (0, None, None)


def test_a_removed_ticket_is_neither_started_nor_shed() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "a", "interactive", FAR)
    assert queue.remove("a")
    assert not queue.remove("a")
    assert queue.take(0.0) is None
    assert queue.expire(9.0) == []


def test_retry_after_is_at_least_a_second() -> None:
    assert AdmissionQueue(RULES).retry_after_s(0.0) == 1.0


def test_shedding_is_an_episode_with_one_start_and_one_end() -> None:
    watch = ShedWatch(quiet_s=1.0)
    assert [watch.shed(0.0), watch.shed(0.5)] == [True, False]
    assert [watch.stopped(1.4), watch.stopped(1.5), watch.stopped(1.6)] == [False, True, False]
    assert watch.shed(2.0)
