"""A fault counts as confirmed when it was seen soon after its inject and shortly before its revert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.faults.catalog import FAULTS
from chaos.faults.node_drain import NodeDrain
from chaos.faults.process_crash_loop import ProcessCrashLoop
from chaos.faults.process_restart import ProcessRestart
from chaos.journal.record import Record
from chaos.spec.model import FaultEntry
from chaos.units import Duration
from chaos.verdict.judge import judge
from chaos.verdict.sightings import Sightings, SlowToShow
from tests.verdict.story import INJECT, Story, experiment

SEEN: Mapping[str, Any] = {"seen": True, "what": "looked"}


@dataclass(frozen=True)
class Life:
    """A fault that is injected at 0 and reverted at `life_s`, and when looks were over that saw it."""

    life_s: float = 20.0
    first: float = 0.2
    last: float = 19.0
    first_took_s: float = 0.0
    revert_took_s: float = 0.0
    fault: object = None

    def seen(self) -> Sightings:
        entry = cast("FaultEntry", SimpleNamespace(name="harm", for_=self.life_s, fault=self.fault))
        records = (
            Record(0, 0.0, "fault_injected", {}),
            Record(1, self.first, "fault_confirmed", {**SEEN, "took_s": self.first_took_s}),
            Record(2, self.last, "fault_still", SEEN),
            Record(3, self.life_s, "fault_reverted", {"by": "timeline", "took_s": self.revert_took_s}),
        )
        injected, confirmed, still, reverted = records
        return Sightings(entry, injected, (confirmed,), (still,), reverted)

    def doubt(self) -> str:
        return self.seen().doubt() or ""


def test_a_fault_that_was_seen_from_its_beginning_to_its_end_is_beyond_doubt() -> None:
    assert None is Life().seen().doubt()
    assert (0.2, 1.0) == (Life().seen().unseen_first_s, Life().seen().unseen_last_s)


def test_a_fault_that_was_first_seen_late_says_how_late() -> None:
    """Otherwise users of the time before would be counted as harmed."""
    assert "first seen 7.2s after its inject, wanted within 3.0s" in Life(first=7.2).doubt()


def test_a_fault_that_was_last_seen_long_before_its_revert_says_how_long() -> None:
    assert "last seen 8.0s before its revert, wanted within 3.0s" in Life(last=12.0).doubt()


def test_a_long_life_may_have_a_tenth_of_it_unseen_at_either_end() -> None:
    assert "" == Life(life_s=100, first=9.9, last=90.1).doubt()
    assert "wanted within 10.0s" in Life(life_s=100, first=10.1).doubt()
    assert "wanted within 10.0s" in Life(life_s=100, last=89.0).doubt()


def test_a_look_counts_from_its_beginning_since_what_it_saw_was_there_while_it_waited() -> None:
    assert "" == Life(first=5.0, first_took_s=4.5).doubt()
    assert "first seen 4.5s" in Life(first=5.0, first_took_s=0.5).doubt()


def test_a_slow_revert_is_no_gap() -> None:
    assert "" == Life(life_s=24.0, last=19.0, revert_took_s=4.0).doubt()


def test_a_fault_that_is_slow_to_show_says_so_itself() -> None:
    slow = SimpleNamespace(shows_within_s=8.0)
    assert ("", True) == (Life(first=7.2, fault=slow).doubt(), "within 8.0s" in Life(first=8.2, fault=slow).doubt())


@pytest.mark.parametrize(
    ("fault", "shows_within_s"),
    [
        (NodeDrain(grace=Duration(30)), 33.0),
        (ProcessRestart(grace=Duration(30)), 40.0),
        (ProcessRestart(drain=False), 10.0),
        (ProcessCrashLoop(life=Duration(5)), 15.0),
    ],
    ids=repr,
)
def test_drains_and_loops_are_slow_to_show(fault: SlowToShow, shows_within_s: float) -> None:
    assert shows_within_s == fault.shows_within_s


def test_whoever_is_slow_to_show_is_so_by_its_settings() -> None:
    """A property: as a field it would be a setting of the file."""
    slow = [kind for kind in FAULTS if hasattr(kind, "shows_within_s")]
    assert slow
    assert all(isinstance(kind.shows_within_s, property) for kind in slow)


def test_a_run_whose_fault_was_seen_late_is_inconclusive_and_says_why() -> None:
    told = Story().evidence()
    late = tuple(replace(r, t=INJECT + 7.0) if r.kind == "fault_confirmed" else r for r in told.records)
    verdict = judge(experiment(), replace(told, records=late))
    assert ("inconclusive", 2) == (verdict.verdict, verdict.exit_code)
    assert "first seen 7.0s after its inject" in verdict.why
    assert (7.0, False) == (pytest.approx(verdict.faults[0].unseen_first_s, abs=0.1), verdict.faults[0].confirmed)
