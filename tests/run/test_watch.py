"""Probes at their own pace: every answer is kept, the first failure of a row is told, events keep their time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

sys.path.insert(0, str(Path(__file__).parent))
from world import MemoryJournal

from chaos.inventory import Target
from chaos.journal.record import ReadingRow
from chaos.ports import Host
from chaos.probes.probe import Reading
from chaos.run.watch import ProbeWatch
from chaos.testing.clock import VirtualClock, run_virtual

TARGETS = (Target("a", "engine", None, (1,), "127.0.0.1:1"), Target("b", "embedder", None, (2,), "127.0.0.1:2"))


class _Host:
    clock = VirtualClock()


class Scripted:
    """A probe that answers from a function of its count of looks."""

    kind: ClassVar[str] = "scripted"
    summary: ClassVar[str] = "answers as told"
    period_s: ClassVar[float] = 1.0

    def __init__(self, answer: Callable[[int], Reading]) -> None:
        self.answer = answer
        self.looks = 0

    def applies_to(self, target: Target) -> bool:
        return target.role == "engine"

    async def read(self, target: Target, host: Host) -> Reading:
        self.looks += 1
        return self.answer(self.looks)


def watched(answer: Callable[[int], Reading], for_s: float) -> tuple[list[ReadingRow], MemoryJournal]:
    async def main() -> tuple[list[ReadingRow], MemoryJournal]:
        rows: list[ReadingRow] = []
        journal, until = MemoryJournal(), asyncio.Event()
        watch = ProbeWatch(cast("Host", _Host()), journal, (Scripted(answer),), TARGETS, rows.append, 1000.0)
        watching = asyncio.create_task(watch.run(until))
        await asyncio.sleep(for_s)
        until.set()
        await watching
        return rows, journal

    return run_virtual(main)


def test_a_target_is_read_once_a_period_and_once_more_at_the_end() -> None:
    rows, _ = watched(lambda n: Reading("scripted", "a", {"looks": float(n)}), 2.75)
    assert [(0.5, 1.0), (1.5, 2.0), (2.5, 3.0), (2.75, 4.0)] == [(row.t, row.value) for row in rows]


def test_a_look_before_the_load_is_one_answer_of_each_at_once() -> None:
    """The first look of a row comes later, when a probe that only tells what is new would have missed something."""

    async def main() -> tuple[list[ReadingRow], int]:
        rows: list[ReadingRow] = []
        probe = Scripted(lambda n: Reading("scripted", "a", {"looks": float(n)}))
        await ProbeWatch(cast("Host", _Host()), MemoryJournal(), (probe,), TARGETS, rows.append, 1000.0).look()
        return rows, probe.looks

    rows, looks = run_virtual(main)
    assert ([(0.0, 1.0)], 1) == ([(row.t, row.value) for row in rows], looks)


def test_only_the_first_failure_of_a_row_is_told() -> None:
    failing = {2, 3, 5}
    _, journal = watched(lambda n: Reading("scripted", "a", error="refused" if n in failing else None), 5.5)
    assert [(1.5, "refused"), (4.5, "refused")] == [(line["t"], line["why"]) for line in journal.of("probe_failed")]


def test_an_event_keeps_the_time_at_which_the_stack_says_it_happened_whatever_else_it_says() -> None:
    event: dict[str, Any] = {"seq": 7, "mono": 1000.25, "name": "breaker_opened", "at": "never", "source": "nobody"}
    _, journal = watched(lambda n: Reading("scripted", "a", events=(event,) if n == 1 else ()), 0.6)
    (line,) = journal.of("event")
    assert (0.25, "a", "breaker_opened", False) == (line["at"], line["source"], line["name"], "seq" in line)
