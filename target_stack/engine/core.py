"""The engine core: it owns the scheduler and makes up the answers. Messages in, reports out (`core_process` runs it).

All tokens of a step travel in one report.

    API ──► {"op": "add", "id", "model", "prompt", "sampling": {...}, "priority", "kv"}   {"op": "abort", "ids"}
            {"op": "abort_all"}
    API ◄── {"t", "out": [[id, piece, finish, stop_reason, first, last], ...], "tokens", "running", "waiting", ...}

    worker ──► {"op": "stage" | "fetched" | "failed", "id", ...}   {"op": "taken", "request"}   {"op": "unnotified"}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from target_stack.engine import text
from target_stack.engine.config import EngineConfig
from target_stack.engine.kv_blocks import BlockPool, block_hashes
from target_stack.engine.kv_transfer import KvConnector, Reference
from target_stack.engine.scheduler import Limits, Produced, Scheduler, Sequence, Step

_MEMORY_LOOK_S = 0.05


class Core:
    """Messages in, steps out; knows neither sockets nor clocks."""

    def __init__(self, config: EngineConfig, blocks: int | None = None, engine_id: str = "") -> None:
        """Start with an empty cache of so many blocks, by default as many as the configuration wants. Peers know this
        life of the engine by its `engine_id`.
        """
        self._config = config
        self._connector = KvConnector(config.kv_transfer, engine_id) if config.kv_transfer else None
        self._deferred: dict[str, Sequence] = {}
        self._kept: dict[str, tuple[str, list[str]]] = {}  # name for peers, and words in the cache, of their prompts
        limits = Limits(
            max_num_seqs=config.max_num_seqs,
            max_num_batched_tokens=config.max_num_batched_tokens,
            policy=config.scheduling_policy,
            prefix_caching=config.enable_prefix_caching,
        )
        self._scheduler = Scheduler(limits, BlockPool(blocks or config.num_gpu_blocks, config.block_size))
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._answers: dict[str, text.Answer] = {}
        self._preemptions = 0
        self._began = 0.0
        self._aborted: list[list[Any]] = []
        self.changed = False  # something left since the last report, so the gauges are stale

    def handle(self, message: Mapping[str, Any], now: float) -> None:
        """Take one message of the API server. Raises ValueError for an unknown one."""
        match message["op"]:
            case "add":
                self._add(message, now)
            case "abort":
                self._drop([*self._scheduler.abort(message["ids"]), *self._undefer(message["ids"])])
            case "abort_all":
                gone = [*self._scheduler.abort_all(), *self._undefer(list(self._deferred))]
                self._aborted += [[each.id, "", "abort", None, None, _last(each)] for each in gone]
                self._drop(gone)
            case _ if self._connector:
                self._handle_worker(message, self._connector)
            case other:
                raise ValueError(f"unknown message {other!r}")

    def _handle_worker(self, message: Mapping[str, Any], connector: KvConnector) -> None:
        match message["op"]:
            case "stage":
                connector.proceeds(message["id"], message["stage"])
            case "fetched":
                connector.fetched(message["id"], message["seconds"])
                if (sequence := self._deferred.pop(message["id"], None)) is not None:
                    sequence.imported = tuple(message["words"])
                    self._scheduler.add(sequence)
            case "failed":
                connector.failed(message["id"])
                if (sequence := self._deferred.pop(message["id"], None)) is not None:
                    self._go_without(sequence, connector)
            case "taken":
                self._scheduler.pool.release(connector.taken(message["request"]))
            case "unnotified":
                connector.counts.failed_notifications += 1
            case other:
                raise ValueError(f"unknown message {other!r}")
        self.changed = True

    def _go_without(self, sequence: Sequence, connector: KvConnector) -> None:
        """What could not be fetched is computed here, or the request fails."""
        if connector.recomputes:
            self._scheduler.add(sequence)
            return
        self._aborted.append([sequence.id, "", "error", None, None, _last(sequence)])
        self._asked.pop(sequence.id, None)

    def orders(self) -> list[dict[str, Any]]:
        """What the worker must be told since the last look."""
        if self._connector is None:
            return []
        orders, self._connector.orders = self._connector.orders, []
        return orders

    def begin(self, now: float) -> tuple[Step, float] | None:
        """The next step and how many seconds it takes; None when there is nothing to do."""
        self._expire(now)
        step = self._scheduler.schedule(now)
        if step is None:
            return None
        self._preemptions += step.preempted
        for each in step.admitted:
            self._think(each)
        cost_s = self._config.cost.step_s(prefill_tokens=step.prefill_tokens, decoding=step.decoding)
        self._began = now
        return step, cost_s * self._config.slow_factor

    def _expire(self, now: float) -> None:
        """Free what was held for peers that did not come in time."""
        if self._connector and (blocks := self._connector.expire(now)):
            self._scheduler.pool.release(blocks)
            self.changed = True

    def withhold(self, blocks: int) -> None:
        """Do without so many blocks from now on: somebody else has the memory. Running requests give way."""
        self._preemptions += self._scheduler.withhold(blocks)

    def wakes_at(self, now: float) -> float | None:
        """When to look again without news: for a slow model id's next step, for memory that may come back, for the end
        of a lease.
        """
        if self._scheduler.starved:
            return now + _MEMORY_LOOK_S
        times = (self._scheduler.wakes_at(now), self._connector.next_expiry() if self._connector else None)
        return min((time for time in times if time is not None), default=None)

    def finish(self, step: Step, now: float) -> dict[str, Any]:
        """The report of a step that ran until `now`."""
        produced = self._scheduler.complete(step)
        for each in produced:
            each.sequence.ready_at = now + (each.sequence.pace - 1) * (now - self._began)
        out = [self._output(each, now) for each in produced]
        return self.report(now, out, step.tokens)

    def report(self, now: float, out: list[list[Any]], tokens: int = 0) -> dict[str, Any]:
        """The state of all gauges, with what came out since the last report."""
        scheduler = self._scheduler
        aborted, self._aborted, self.changed = self._aborted, [], False
        return {
            "t": now,
            "out": out + aborted,
            "tokens": tokens,
            "running": len(scheduler.running),
            "waiting": len(scheduler.waiting),
            "kv": scheduler.pool.usage,
            "queries": scheduler.queries,
            "hits": scheduler.hits,
            "preemptions": self._preemptions,
            **({"deferred": len(self._deferred), "kv_transfer": self._connector.report()} if self._connector else {}),
        }

    def _add(self, message: Mapping[str, Any], now: float) -> None:
        config, tokens = self._config, tuple(text.pieces(message["prompt"]))
        habits = config.habits(message["model"])
        prefill_s = config.cost.step_s(prefill_tokens=len(tokens), decoding=0)
        self._asked[message["id"]] = message
        sequence = Sequence(
            id=message["id"],
            prompt_tokens=len(tokens),
            output_tokens=0,
            arrived=now,
            hashes=block_hashes(tokens, config.block_size, config.prefix_hash),
            tokens=tokens,
            priority=message["priority"],
            pace=habits.slow_factor,
            ready_at=now + (habits.slow_factor - 1) * prefill_s,
        )
        self._queue(sequence, message.get("kv") or {})

    def _queue(self, sequence: Sequence, reference: Reference) -> None:
        """Into the line, or aside until its prompt has come from a peer."""
        if self._connector and reference.get("do_remote_prefill"):
            self._deferred[sequence.id] = sequence
            self._connector.fetch(sequence.id, reference)
            self.changed = True
            return
        sequence.keeps_blocks = bool(self._connector and reference.get("do_remote_decode"))
        self._scheduler.add(sequence)

    def _undefer(self, ids: Iterable[str]) -> list[Sequence]:
        """Fetch no more for these."""
        gone = [self._deferred.pop(each) for each in ids if each in self._deferred]
        for sequence in gone:
            if self._connector:
                self._connector.give_up(sequence.id)
        return gone

    def _think(self, sequence: Sequence) -> None:
        """Make up the whole answer when the prompt is read: it comes from what lies in the cache, right or wrong."""
        asked = self._asked.pop(sequence.id, None)
        if asked is None:  # preempted before: what was said stands
            return
        sampling = text.Sampling(**{**asked["sampling"], "stop": tuple(asked["sampling"]["stop"])})
        words = self._scheduler.words_in_cache(sequence)
        if sequence.keeps_blocks:
            self._kept[sequence.id] = (f"{asked.get('request_id', '')}-{sequence.id}", words)
        answer = text.answer(
            "".join(words),
            seed=self._config.seed if asked.get("seed") is None else asked["seed"],
            sampling=sampling,
            verbosity=self._config.habits(asked["model"]).verbosity,
        )
        self._answers[sequence.id] = answer
        sequence.output_tokens = len(answer.pieces)

    def _drop(self, gone: list[Sequence]) -> None:
        for each in gone:
            self._asked.pop(each.id, None)
            self._answers.pop(each.id, None)
            self._kept.pop(each.id, None)
        self.changed = self.changed or bool(gone)

    def _output(self, produced: Produced, now: float) -> list[Any]:
        sequence = produced.sequence
        answer = self._answers[sequence.id]
        piece = answer.pieces[produced.number - 1]
        first = _first(sequence, now) if produced.number == 1 else None
        if not produced.finished:
            return [sequence.id, piece, None, None, first, None]
        del self._answers[sequence.id]
        last = _last(sequence)
        if self._connector and sequence.keeps_blocks:
            (name, words), size = self._kept.pop(sequence.id), self._config.block_size
            last["kv"] = self._connector.keep(name, sequence.blocks, words, size, now)
        return [sequence.id, piece, answer.finish, answer.stop_reason, first, last]


def _first(sequence: Sequence, now: float) -> dict[str, float]:
    """What is known once the first token is out: seconds in the queue, seconds of prefill, cached prompt tokens, and
    those that a peer has computed.
    """
    started = sequence.arrived if sequence.scheduled_at is None else sequence.scheduled_at
    known = {"queued_s": started - sequence.arrived, "prefill_s": now - started, "cached": sequence.cached_tokens}
    return (
        {**known, "external": min(len(sequence.imported), sequence.prompt_tokens - 1)} if sequence.imported else known
    )


def _last(sequence: Sequence) -> dict[str, Any]:
    return {"preemptions": sequence.preemptions}
