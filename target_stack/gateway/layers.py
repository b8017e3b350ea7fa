"""Metrics of three of the four layers: resources, inference, content quality. The request path is in `metrics`.

Read from below when something is wrong: a full machine explains slow tokens, slow tokens explain a full queue, and only
when all of these are well are bad answers the answers' own fault.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from target_stack.gateway.instruments import Counter, Gauge, Histogram, Histograms, Metric

LAG_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
ITL_BUCKETS_S = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
LENGTH_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
_LAG_PERIOD_S = 0.1


class Resources:
    """What the gateway's own process uses."""

    def __init__(self) -> None:
        """Read when somebody asks; only the lag of the loop is measured all the time."""
        self.loop_lag = Histogram(
            "gateway_loop_lag_seconds", "How late the event loop wakes up a task that is due.", LAG_BUCKETS_S
        )
        self.metrics: tuple[Metric, ...] = (
            Gauge("gateway_cpu_seconds_total", "CPU time of the process.", _one(time.process_time), kind="counter"),
            Gauge("gateway_resident_bytes", "Memory of the process.", _one(_resident_bytes)),
            Gauge("gateway_open_files", "Open file descriptors.", _one(_open_files)),
            self.loop_lag,
        )

    async def watch_lag(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_PERIOD_S
            await asyncio.sleep(_LAG_PERIOD_S)
            self.loop_lag.observe(max(0.0, loop.time() - due))


def _one(read: Callable[[], float]) -> Callable[[], list[tuple[dict[str, str], float]]]:
    return lambda: [({}, read())]


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Inference:
    """What the engines give, by the replica that served."""

    def __init__(self) -> None:
        """Nothing was served."""
        self.ttft = Histograms("gateway_replica_ttft_seconds", "From arrival to the first token.", "replica")
        self.itl = Histograms(
            "gateway_itl_seconds", "Between two tokens of a streamed answer.", "replica", ITL_BUCKETS_S
        )
        self.tokens = Counter(
            "gateway_tokens_total", "Tokens of prompts and of answers, as engines count them.", ("replica", "kind")
        )
        self.metrics: tuple[Metric, ...] = (self.ttft, self.itl, self.tokens)

    def count(self, replica: str, prompt: int | None, output: int) -> None:
        """The tokens of one whole answer."""
        self.tokens.add(replica, "prompt", by=prompt or 0)
        self.tokens.add(replica, "output", by=output)


class ContentQuality:
    """What users read."""

    def __init__(self) -> None:
        """Nothing was read."""
        self.degraded = Counter("gateway_degraded_total", "Answers that were worth less than asked for.", ("reason",))
        self.empty = Counter("gateway_empty_answers_total", "Answers that said nothing.")
        self.finish_reasons = Counter("gateway_finish_reasons_total", "Why answers ended.", ("reason",))
        self.length = Histogram("gateway_answer_tokens", "Length of answers in tokens.", LENGTH_BUCKETS)
        self.recall_probes = Counter(
            "gateway_recall_probes_total",
            "Standard questions asked by the gateway: hit, miss, unanswered.",
            ("result",),
        )
        self._recall: Callable[[], float | None] = lambda: None
        self.metrics: tuple[Metric, ...] = (
            self.degraded,
            self.empty,
            self.finish_reasons,
            self.length,
            self.recall_probes,
            Gauge("gateway_recall_ratio", "Standard questions that found their document.", self._recall_samples),
        )

    def count(self, degraded: Iterable[str], finish_reasons: Iterable[str], tokens: int, *, empty: bool) -> None:
        """One whole answer."""
        for reason in degraded:
            self.degraded.add(reason)
        for reason in finish_reasons:
            self.finish_reasons.add(reason)
        self.length.observe(tokens)
        if empty:
            self.empty.add()

    def show_recall(self, read: Callable[[], float | None]) -> None:
        """Where the ratio is read; without a reader, and before the first question, there is no sample."""
        self._recall = read

    def _recall_samples(self) -> list[tuple[dict[str, str], float]]:
        ratio = self._recall()
        return [] if ratio is None else [({}, ratio)]
