"""Continuous batching in virtual time: no clock, no words."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from target_stack.engine.kv_blocks import BlockPool, block_hashes
from target_stack.engine.scheduler import Limits, Scheduler, Sequence


def scheduler(
    *, seqs: int = 4, budget: int = 64, blocks: int = 64, policy: str = "fcfs", cache: bool = True
) -> Scheduler:
    return Scheduler(Limits(seqs, budget, policy, cache), BlockPool(blocks, 4))


def sequence(
    name: str, prompt: int = 8, output: int = 4, *, at: float = 0.0, priority: int = 0, text: str = ""
) -> Sequence:
    hashes = block_hashes(list(text), 4) if text else ()
    return Sequence(name, len(text) or prompt, output, at, hashes, priority)


def finish_all(subject: Scheduler, most_steps: int = 10_000) -> list[tuple[str, int]]:
    """Run until idle; (id, token number) in order."""
    tokens = []
    for step_number in range(most_steps):
        step = subject.schedule(float(step_number))
        if step is None:
            return tokens
        tokens += [(each.sequence.id, each.number) for each in subject.complete(step)]
    raise AssertionError("livelock")


def test_the_first_step_prefills_and_brings_the_first_token():
    subject = scheduler()
    subject.add(sequence("a"))
    step = subject.schedule(0.0)
    assert (step.prefill_tokens, step.decoding) == (8, 0)
    assert [(each.number, each.finished) for each in subject.complete(step)] == [(1, False)]


def test_running_requests_decode_while_a_newcomer_prefills():
    subject = scheduler()
    subject.add(sequence("a"))
    subject.complete(subject.schedule(0.0))
    subject.add(sequence("b"))
    step = subject.schedule(1.0)
    assert (step.prefill_tokens, step.decoding) == (8, 1)


def test_a_prompt_longer_than_the_budget_is_computed_in_chunks():
    subject = scheduler(budget=5)
    subject.add(sequence("a", prompt=8, output=1))
    first = subject.schedule(0.0)
    assert (first.tokens, subject.complete(first)) == (5, [])
    second = subject.schedule(1.0)
    assert (second.tokens, len(subject.complete(second))) == (3, 1)


def test_max_num_seqs_bounds_the_batch_and_the_rest_waits_in_order():
    subject = scheduler(seqs=2)
    for name in "abc":
        subject.add(sequence(name, output=1))
    subject.schedule(0.0)
    assert [each.id for each in subject.running] == ["a", "b"]
    assert [each.id for each in subject.waiting] == ["c"]


def test_a_request_is_admitted_only_when_its_whole_prompt_fits():
    subject = scheduler(blocks=3)
    subject.add(sequence("a", prompt=8))
    subject.add(sequence("b", prompt=8))
    subject.schedule(0.0)
    assert [each.id for each in subject.waiting] == ["b"]


def test_short_of_blocks_the_last_running_request_is_preempted_to_the_front_of_the_queue():
    subject = scheduler(blocks=4, cache=False)
    for name in ("a", "b", "c"):
        subject.add(sequence(name, prompt=7 if name != "c" else 4, output=8))
    finish_first = subject.schedule(0.0)
    subject.complete(finish_first)
    subject.complete(subject.schedule(1.0))  # both now hold 8 computed tokens: the next one needs a third block
    step = subject.schedule(2.0)
    assert step.preempted == 1
    assert [each.id for each in subject.running] == ["a"]
    assert [each.id for each in subject.waiting] == ["b", "c"]
    assert subject.waiting[0].computed == 0


def test_a_step_that_preempts_admits_nobody():
    subject = scheduler(blocks=4, cache=False)
    subject.add(sequence("a", prompt=7, output=8))
    subject.add(sequence("b", prompt=7, output=8))
    subject.complete(subject.schedule(0.0))
    subject.complete(subject.schedule(1.0))
    subject.add(sequence("tiny", prompt=1, output=1))
    assert [each.id for each, _ in subject.schedule(2.0).work] == ["a"]


def test_priority_runs_the_lower_number_first_and_preempts_the_higher():
    subject = scheduler(blocks=4, policy="priority", cache=False)
    subject.add(sequence("late", prompt=7, output=8, priority=5))
    subject.add(sequence("urgent", prompt=7, output=8, at=1.0, priority=-1))
    subject.complete(subject.schedule(2.0))
    assert [each.id for each in subject.running] == ["urgent", "late"]
    subject.complete(subject.schedule(3.0))
    subject.schedule(4.0)
    assert [each.id for each in subject.running] == ["urgent"]


def test_a_prompt_seen_before_is_not_computed_again_except_for_its_last_token():
    subject = scheduler()
    subject.add(sequence("a", output=1, text="abcdefgh"))
    finish_all(subject)
    subject.add(sequence("b", output=1, text="abcdefgh"))
    assert subject.schedule(9.0).prefill_tokens == 4  # the second block holds the last token
    assert (subject.queries, subject.hits) == (16, 4)


def test_an_aborted_request_frees_its_blocks_at_once_and_its_step_brings_it_nothing():
    subject = scheduler()
    subject.add(sequence("a"))
    step = subject.schedule(0.0)
    assert [each.id for each in subject.abort(["a", "unknown"])] == ["a"]
    assert subject.pool.usage == 0.0
    assert subject.complete(step) == []


def test_a_waiting_request_can_be_aborted():
    subject = scheduler(seqs=1)
    subject.add(sequence("a"))
    subject.add(sequence("b"))
    subject.schedule(0.0)
    subject.abort(["b"])
    assert subject.waiting == []


requests = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 12), st.integers(0, 2)), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(requests, st.sampled_from(["fcfs", "priority"]), st.booleans(), st.integers(1, 6), st.integers(3, 40))
def test_every_request_gets_each_token_once_and_in_order_however_small_the_cache(work, policy, cache, seqs, budget):
    subject = scheduler(seqs=seqs, budget=budget, blocks=8, policy=policy, cache=cache)
    for place, (prompt, output, priority) in enumerate(work):
        subject.add(
            sequence(
                str(place),
                output=output,
                at=float(place),
                priority=priority,
                text="ab" * prompt if prompt < 10 else "x" * prompt,
            )
        )
    tokens = finish_all(subject)
    for place, (_, output, _) in enumerate(work):
        assert [number for name, number in tokens if name == str(place)] == list(range(1, output + 1))
    assert subject.pool.usage == 0.0
    assert (subject.running, subject.waiting) == ([], [])
