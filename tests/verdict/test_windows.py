"""Windows come from the journal's real times, and a sample belongs where it was due."""

from dataclasses import replace

import numpy as np

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record
from chaos.verdict.windows import Window, times_of
from tests.verdict.story import INJECT, LOAD_END, LOAD_START, REVERT, Story, experiment


def test_the_windows_of_a_whole_run() -> None:
    times = times_of(experiment(), Story().evidence())
    expected = {
        "gate": (0.0, LOAD_START),
        "baseline": (LOAD_START, INJECT),
        "outage": (INJECT, REVERT),
        "fault": (INJECT, REVERT),
        "recovery": (REVERT, REVERT + 12),
        "settled": (REVERT + 12, LOAD_END),
    }
    assert expected == {name: (w.start, w.end) for name, w in times.windows.items()}


def test_a_late_inject_moves_the_window_not_the_plan() -> None:
    records = [replace(r, t=r.t + 2.0) if r.kind == "fault_injected" else r for r in Story().evidence().records]
    times = times_of(experiment(), Evidence.build(records))
    assert (times.windows["outage"].start, times.windows["outage"].end) == (INJECT + 2.0, REVERT)
    assert times.windows["baseline"].end == INJECT + 2.0


def test_a_fault_that_never_came_back_has_no_recovery() -> None:
    story = Story(left_out=frozenset({"fault_reverted"}))
    times = times_of(experiment(), story.evidence())
    assert times.windows["outage"].end == LOAD_END
    assert not {"recovery", "settled"} & set(times.windows)


def test_only_the_first_revert_counts() -> None:
    again = (REVERT + 5, "fault_reverted", {"fault": "outage", "by": "watchdog"})
    assert times_of(experiment(), Story(added=(again,)).evidence()).last_revert == REVERT


def test_faults_with_a_pause_make_one_window_of_two_spans() -> None:
    extra = [
        Record(90, REVERT + 4, "fault_injected", {"fault": "second"}),
        Record(91, REVERT + 6, "fault_reverted", {"fault": "second", "by": "timeline"}),
    ]
    times = times_of(experiment(), Evidence.build([*Story().evidence().records, *extra]))
    assert times.windows["fault"].spans == ((INJECT, REVERT), (REVERT + 4, REVERT + 6))
    assert times.last_revert == REVERT + 6


def test_grace_trims_the_start_of_every_span_and_drops_what_is_shorter() -> None:
    window = Window("fault", ((0.0, 10.0), (20.0, 22.0)))
    assert window.after(3.0).spans == ((3.0, 10.0),)
    assert window.after(50.0).spans == ()


def test_the_end_of_a_window_is_not_in_it() -> None:
    holds = Window("w", ((1.0, 2.0), (3.0, 4.0))).holds(np.array([0.5, 1.0, 2.0, 3.5, 4.0]))
    assert holds.tolist() == [False, True, False, True, False]


def test_a_run_without_load_has_no_windows() -> None:
    assert dict(times_of(experiment(), Evidence.build()).windows) == {}
