"""The queue is bounded, sheds instead of answering too late, prefers interactive work and starves nobody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.queue import AdmissionQueue, Shed, ShedWatch
from target_stack.gateway.policies.settings import QueueSettings

RULES = QueueSettings(
    capacity=4,
    wait_s=1.0,
    backed_up_wait_s=0.25,
    backed_up_after_s=0.5,
    batch_wait_s=5.0,
    batch_aging_s=0.5,
    batch_share=0.25,
)
FAR = 1e9


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
    queue = AdmissionQueue(
        QueueSettings(capacity=10_000, wait_s=FAR, backed_up_wait_s=FAR, batch_wait_s=FAR, batch_share=0.25)
    )
    for ticket in range(1000):
        queue.offer(0.0, ("batch", ticket), "batch", FAR)
        queue.offer(0.0, ("user", ticket), "interactive", FAR)
    kinds = [queue.take(10.0)[0] for _ in range(1000)]  # type: ignore[index]  # tickets here are pairs
    assert kinds.count("batch") == 250


def test_a_ticket_that_waited_past_its_limit_is_shed() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "a", "interactive", FAR)
    assert queue.next_expiry(0.0) == 1.0
    assert queue.expire(0.2) == []
    assert queue.expire(1.0) == [Shed("a", "waited_too_long")]


def test_a_standing_queue_gets_the_short_wait_limit() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "a", "interactive", FAR)
    queue.offer(0.3, "b", "interactive", FAR)
    assert queue.expire(0.49) == []
    assert queue.expire(0.5) == [Shed("a", "waited_too_long")]
    assert queue.expire(0.55) == [Shed("b", "waited_too_long")]


def test_a_deadline_sheds_before_the_wait_limit() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "a", "interactive", 0.1)
    assert queue.expire(0.1) == [Shed("a", "waited_too_long")]


def test_who_would_wait_past_the_deadline_is_refused_at_the_door() -> None:
    queue = AdmissionQueue(QueueSettings(capacity=100, wait_s=10.0, backed_up_wait_s=10.0))
    for ticket in range(6):
        queue.offer(0.0, ticket, "interactive", FAR)
    for start in range(3):  # one start every 0.2 s
        queue.take(start * 0.2)
    assert queue.offer(0.4, "hurried", "interactive", 0.4 + 0.5) == [Shed("hurried", "wait_too_long")]
    assert queue.offer(0.4, "patient", "interactive", 0.4 + 0.7) == []


def test_a_removed_ticket_is_neither_started_nor_shed() -> None:
    queue = AdmissionQueue(RULES)
    queue.offer(0.0, "a", "interactive", FAR)
    assert queue.remove("a")
    assert not queue.remove("a")
    assert queue.take(0.0) is None
    assert queue.expire(9.0) == []


def test_retry_after_is_at_least_a_second() -> None:
    assert AdmissionQueue(RULES).retry_after_s() == 1.0


STEPS = st.lists(
    st.tuples(
        st.sampled_from((0.0, 0.05, 0.3, 1.0)),
        st.sampled_from(("interactive", "batch", "take", "take", "remove")),
        st.sampled_from((0.1, 2.0, 50.0)),
    ),
    max_size=150,
)


@given(STEPS)
def test_every_ticket_leaves_exactly_once_and_order_and_bounds_hold(steps: list[tuple[float, str, float]]) -> None:
    """The reference is a plain list of (ticket, class, since, deadline) and the rules read literally."""
    queue, now = AdmissionQueue(RULES), 0.0
    waiting: list[tuple[int, str, float, float]] = []
    standing_since: float | None = None
    for ticket, (wait, what, patience) in enumerate(steps):
        now += wait
        standing = standing_since is not None and now - standing_since >= RULES.backed_up_after_s
        limits = {"interactive": RULES.backed_up_wait_s if standing else RULES.wait_s, "batch": RULES.batch_wait_s}
        over = [entry for entry in waiting if now >= min(entry[3], entry[2] + limits[entry[1]])]
        assert {shed.ticket for shed in queue.expire(now)} == {entry[0] for entry in over}
        waiting = [entry for entry in waiting if entry not in over]
        standing_since = standing_since if waiting else None
        if what == "take":
            taken = queue.take(now)
            assert (taken is None) == (not waiting)
            if waiting:
                mine = next(entry for entry in waiting if entry[0] == taken)
                assert mine == next(entry for entry in waiting if entry[1] == mine[1])
                users = [entry for entry in waiting if entry[1] == "interactive"]
                if mine[1] == "batch" and users:
                    assert now - mine[2] >= RULES.batch_aging_s
                waiting.remove(mine)
        elif what == "remove":
            if waiting:
                assert queue.remove(waiting.pop(len(waiting) // 2)[0])
        else:
            refused = queue.offer(now, ticket, what, now + patience)  # type: ignore[arg-type]  # a word of Priority
            gone = {shed.ticket for shed in refused}
            if ticket not in gone:
                waiting.append((ticket, what, now, now + patience))
            elif refused[0].reason == "queue_full":
                assert len(waiting) == RULES.capacity
            waiting = [entry for entry in waiting if entry[0] not in gone]
        if not waiting:
            standing_since = None
        elif standing_since is None:
            standing_since = now
        assert len(queue) == len(waiting) <= RULES.capacity


def test_shedding_is_an_episode_with_one_start_and_one_end() -> None:
    watch = ShedWatch(quiet_s=1.0)
    assert [watch.shed(0.0), watch.shed(0.5)] == [True, False]
    assert [watch.stopped(1.4), watch.stopped(1.5), watch.stopped(1.6)] == [False, True, False]
    assert watch.shed(2.0)
