"""Which requests run in the next step: continuous batching over paged KV blocks, as vLLM's V1 scheduler decides it.

    add ──► waiting ──► running ──► finished            schedule(now) fills one step, complete(step) takes its tokens
               ▲           │
               └─preempted─┘   blocks freed, all to be computed again, front of the queue

Running requests come first, one token each or the next piece of their prompt, then waiting ones while the token budget,
the sequence limit and the blocks last. Pure: time comes in as an argument, the words are somebody else's business.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field

from target_stack.engine.kv_blocks import BlockPool


@dataclass(eq=False, slots=True)
class Sequence:
    """One answer being made. `computed` counts tokens whose KV is in the cache, of prompt and answer together.

    It takes no step before `ready_at`; `pace` above 1 marks one whose steps somebody stretches that way. `imported` are
    the words of its prompt that a peer has computed; one that `keeps_blocks` still holds them when it has finished.
    """

    id: str
    prompt_tokens: int
    output_tokens: int
    arrived: float
    hashes: tuple[bytes, ...] = ()
    priority: int = 0
    tokens: tuple[str, ...] = ()
    pace: float = 1.0
    ready_at: float = 0.0
    imported: tuple[str, ...] = ()
    keeps_blocks: bool = False
    computed: int = 0
    generated: int = 0
    cached_tokens: int = 0
    preemptions: int = 0
    scheduled: bool = False
    scheduled_at: float | None = None
    blocks: list[int] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next one can come out; 1 while decoding."""
        return self.prompt_tokens + self.generated - self.computed

    @property
    def order(self) -> tuple[int, float]:
        """Place in the priority policy: lower runs earlier."""
        return self.priority, self.arrived


@dataclass(frozen=True)
class Limits:
    """What bounds a step. `policy` is fcfs or priority."""

    max_num_seqs: int
    max_num_batched_tokens: int
    policy: str = "fcfs"
    prefix_caching: bool = True


@dataclass(frozen=True)
class Step:
    """One forward pass: how many tokens of which sequences, who joined, and how many lost their blocks for it."""

    work: tuple[tuple[Sequence, int], ...]
    prefill_tokens: int
    decoding: int
    preempted: int
    admitted: tuple[Sequence, ...] = ()

    @property
    def tokens(self) -> int:
        """All tokens of the step."""
        return self.prefill_tokens + self.decoding


@dataclass(frozen=True, slots=True)
class Produced:
    """A new token: the sequence's `number`-th, counted from 1."""

    sequence: Sequence
    number: int
    finished: bool


class Scheduler:
    """The state between steps. `queries` and `hits` count prompt tokens looked up and found in the prefix cache."""

    def __init__(self, limits: Limits, pool: BlockPool) -> None:
        """Start empty."""
        self.limits = limits
        self.pool = pool
        self.running: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.queries = 0
        self.hits = 0
        self._live: dict[str, Sequence] = {}

    def add(self, sequence: Sequence) -> None:
        """Queue a new request."""
        self._live[sequence.id] = sequence
        if self.limits.policy == "priority":
            bisect.insort(self.waiting, sequence, key=lambda each: each.order)
        else:
            self.waiting.append(sequence)

    def abort(self, ids: Iterable[str]) -> list[Sequence]:
        """Drop requests in whatever state they are, and free what they hold; unknown ids are fine."""
        dropped = [self._live.pop(each) for each in ids if each in self._live]
        for sequence in dropped:
            (self.running if sequence.scheduled else self.waiting).remove(sequence)
            self._free(sequence)
        return dropped

    def abort_all(self) -> list[Sequence]:
        """Drop everything."""
        return self.abort(list(self._live))

    def schedule(self, now: float) -> Step | None:
        """Fill the next step; None when nothing can run."""
        work: dict[Sequence, int] = {}
        preempted = self._continue_running(work, now)
        # After a preemption blocks are short: a newcomer would only take them away again.
        admitted = () if preempted else self._admit_waiting(work, now)
        if not work:
            return None
        decoding = sum(sequence.generated > 0 and sequence.remaining == 1 for sequence in work)
        prefill = sum(work.values()) - decoding  # a decoding sequence computes one token
        return Step(tuple(work.items()), prefill, decoding, preempted, admitted)

    def complete(self, step: Step) -> list[Produced]:
        """The step is done: sequences whose known tokens are all computed gain a token; the finished ones leave."""
        produced = []
        for sequence, tokens in step.work:
            if self._live.get(sequence.id) is not sequence:  # aborted while the step ran
                continue
            sequence.computed += tokens
            self._publish(sequence)
            if sequence.remaining == 0:
                sequence.generated += 1
                produced.append(Produced(sequence, sequence.generated, sequence.generated >= sequence.output_tokens))
        for each in produced:
            if each.finished:
                self._leave(each.sequence)
        return produced

    def withhold(self, blocks: int) -> int:
        """Do without so many blocks; how many running requests had to give theirs up for it."""
        preempted = 0
        while not self.pool.withhold(blocks) and self.running:
            self._preempt(self._victim())
            preempted += 1
        return preempted

    @property
    def starved(self) -> bool:
        """Whether requests wait while blocks are withheld: nothing but their return would let them run."""
        return bool(self.waiting and self.pool.withheld)

    def wakes_at(self, now: float) -> float | None:
        """The earliest time after `now` at which a stretched request may go on; None when there is none."""
        return min((each.ready_at for each in self._live.values() if each.ready_at > now), default=None)

    def _continue_running(self, work: dict[Sequence, int], now: float) -> int:
        budget = self.limits.max_num_batched_tokens
        preempted = 0
        for sequence in tuple(self.running):
            if sequence.ready_at > now:
                continue
            tokens = min(sequence.remaining, budget)
            while sequence.scheduled and tokens and not self._grow(sequence, tokens):
                victim = self._victim()
                budget += work.pop(victim, 0)
                self._preempt(victim)
                preempted += 1
            if sequence.scheduled and tokens:
                work[sequence] = tokens
                budget -= tokens
        return preempted

    def _admit_waiting(self, work: dict[Sequence, int], now: float) -> tuple[Sequence, ...]:
        admitted: list[Sequence] = []
        budget = self.limits.max_num_batched_tokens - sum(work.values())
        for sequence in tuple(self.waiting):
            if budget <= 0 or len(self.running) >= self.limits.max_num_seqs:
                break
            if sequence.ready_at > now:
                continue
            if not self._reserve(sequence):
                break
            tokens = min(sequence.remaining, budget)
            self._grow(sequence, tokens)
            self.waiting.remove(sequence)
            self.running.append(sequence)
            sequence.scheduled = True
            sequence.scheduled_at = now if sequence.scheduled_at is None else sequence.scheduled_at
            admitted.append(sequence)
            work[sequence] = tokens
            budget -= tokens
        return tuple(admitted)

    def words_in_cache(self, sequence: Sequence) -> list[str]:
        """The prompt as the model reads it: what lies in the blocks that were found or fetched, then what is computed
        anew.
        """
        if sequence.imported:
            return [*sequence.imported[: sequence.computed], *sequence.tokens[sequence.computed :]]
        found = sequence.computed // self.pool.size
        return [*self.pool.read(sequence.blocks[:found]), *sequence.tokens[sequence.computed :]]

    def _reserve(self, sequence: Sequence) -> bool:
        """Take the cached beginning, if the whole rest has room too; at least one token is always left to compute."""
        known = sequence.prompt_tokens + sequence.generated
        if sequence.imported:
            return self._reserve_imported(sequence, known)
        usable = sequence.hashes[: (known - 1) // self.pool.size] if self.limits.prefix_caching else ()
        shared = self.pool.cached(usable)
        if not self.pool.fits(self.pool.blocks_for(known) - len(shared), shared):
            return False
        self.pool.share(shared)
        sequence.blocks = shared
        sequence.computed = len(shared) * self.pool.size
        if sequence.scheduled_at is None:
            sequence.cached_tokens = sequence.computed
            self.queries += sequence.prompt_tokens
            self.hits += sequence.computed
        return True

    def _reserve_imported(self, sequence: Sequence, known: int) -> bool:
        """Its beginning has come from a peer and needs blocks of its own; the last token is computed here."""
        if not self.pool.fits(self.pool.blocks_for(known), ()):
            return False
        sequence.computed = min(len(sequence.imported), known - 1)
        return True

    def _grow(self, sequence: Sequence, tokens: int) -> bool:
        wanted = self.pool.blocks_for(sequence.computed + tokens) - len(sequence.blocks)
        if wanted <= 0:  # as with most tokens
            return True
        fresh = self.pool.allocate(wanted)
        if fresh is None:
            return False
        sequence.blocks += fresh
        return True

    def _victim(self) -> Sequence:
        if self.limits.policy == "priority":
            return max(self.running, key=lambda each: each.order)
        return self.running[-1]

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._free(sequence)
        sequence.scheduled = False
        sequence.computed = 0
        sequence.imported = ()
        sequence.preemptions += 1
        if self.limits.policy == "priority":
            bisect.insort(self.waiting, sequence, key=lambda each: each.order)
        else:
            self.waiting.insert(0, sequence)

    def _publish(self, sequence: Sequence) -> None:
        if self.limits.prefix_caching and sequence.generated == 0:
            full = min(sequence.computed // self.pool.size, len(sequence.hashes))
            size, words = self.pool.size, (*sequence.imported, *sequence.tokens[len(sequence.imported) :])
            for place, (block, content) in enumerate(zip(sequence.blocks[:full], sequence.hashes[:full], strict=True)):
                self.pool.publish(block, content, words[place * size : (place + 1) * size])

    def _leave(self, sequence: Sequence) -> None:
        """It has finished."""
        del self._live[sequence.id]
        self.running.remove(sequence)
        if not sequence.keeps_blocks:
            self._free(sequence)

    def _free(self, sequence: Sequence) -> None:
        self.pool.release(sequence.blocks)
        sequence.blocks = []
