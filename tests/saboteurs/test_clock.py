"""The clock of some processes is wrong while the saboteur is there; the mark alone is enough to mend it."""

from __future__ import annotations

import json
import signal
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.saboteurs.clock import mend
from chaos.saboteurs.vdso import FUNCTIONS, Page, Unsuitable, our_page
from tests.saboteurs.started import PROCESSES, begin, family, soon
from tests.saboteurs.victim import Victim

DATES = ("clock_gettime", "coarse", "gettimeofday", "time", "time_into")


@pytest.fixture
def victim() -> Iterator[Victim]:
    with Victim() as made:
        yield made


def start(victim: Victim, folder: Path, ahead_s: float = 0.0, drift: float = 0.0, mark: str = "mine") -> Path:
    """The warrant of a saboteur that is in force."""
    warrant = folder / mark
    orders = {"processes": victim.processes, "mark": mark, "ahead_s": ahead_s, "drift": drift}
    warrant.write_text(json.dumps(orders))
    ran = begin(warrant, "clock")
    assert ran.status == 0, ran.errors
    return warrant


def ahead(told: dict[str, float]) -> list[float]:
    """By how much each way to ask is ahead of our clock."""
    return [told[name] - time.time() for name in DATES]


@pytest.mark.parametrize("ahead_s", [3600.0, -86_400.0])
def test_every_date_is_wrong_by_as_much_and_the_monotonic_clock_is_right(
    victim: Victim, tmp_path: Path, ahead_s: float
) -> None:
    warrant = start(victim, tmp_path, ahead_s)
    told = victim.ask("clock")
    assert ahead(told) == pytest.approx([ahead_s] * len(DATES), abs=2)
    assert told["monotonic"] == pytest.approx(time.monotonic(), abs=2)
    warrant.unlink()
    assert soon(lambda: not family(warrant))
    assert ahead(victim.ask("clock")) == pytest.approx([0] * len(DATES), abs=2)


def test_a_child_inherits_it_and_everybody_else_is_right(victim: Victim, tmp_path: Path) -> None:
    with Victim() as other:
        warrant = start(victim, tmp_path, 3600)
        assert ahead(victim.ask("child"))[0] == pytest.approx(3600, abs=2)
        assert ahead(other.ask("clock"))[0] == pytest.approx(0, abs=2)
        warrant.unlink()


def test_a_drift_gains_more_the_longer_it_lasts(victim: Victim, tmp_path: Path) -> None:
    begun = time.time()
    start(victim, tmp_path, 100, drift=2.0)
    first = victim.ask("clock")
    time.sleep(0.5)
    second = victim.ask("clock")
    lasted_s = second["monotonic"] - first["monotonic"]
    assert second["clock_gettime"] - first["clock_gettime"] == pytest.approx(3 * lasted_s, rel=0.05)
    assert first["clock_gettime"] > begun + 100


def test_a_killed_saboteur_leaves_the_harm_and_its_mark_is_enough_to_mend_it(victim: Victim, tmp_path: Path) -> None:
    warrant = start(victim, tmp_path, 3600)
    for process in family(warrant):
        PROCESSES.signal(process, signal.SIGKILL)
    assert soon(lambda: not family(warrant))
    mend("another")
    assert ahead(victim.ask("clock"))[0] == pytest.approx(3600, abs=2)
    mend("mine")
    mend("mine")
    assert ahead(victim.ask("clock"))[0] == pytest.approx(0, abs=2)


def test_a_second_one_on_the_same_process_is_refused_and_does_not_disturb_the_first(
    victim: Victim, tmp_path: Path
) -> None:
    start(victim, tmp_path, 3600)
    second = tmp_path / "second"
    second.write_text(json.dumps({"processes": victim.processes, "mark": "second", "ahead_s": 5, "drift": 0}))
    assert "changed already" in begin(second, "clock").errors
    assert ahead(victim.ask("clock"))[0] == pytest.approx(3600, abs=2)
    mend("mine")


def test_it_can_be_mended_while_somebody_traces_the_process(victim: Victim, tmp_path: Path) -> None:
    start(victim, tmp_path, 3600)
    traced = tmp_path / "traced"
    orders = {"processes": victim.processes, "folders": [str(tmp_path / "none")], "operations": ["write"], "share": 1}
    traced.write_text(json.dumps({**orders, "errno": 5}))
    assert begin(traced, "io_calls").status == 0
    mend("mine")
    assert ahead(victim.ask("clock"))[0] == pytest.approx(0, abs=2)


def test_a_process_that_is_being_traced_is_refused(victim: Victim, tmp_path: Path) -> None:
    traced = tmp_path / "traced"
    orders = {"processes": victim.processes, "folders": [str(tmp_path / "none")], "operations": ["write"], "share": 1}
    traced.write_text(json.dumps({**orders, "errno": 5}))
    assert begin(traced, "io_calls").status == 0
    late = tmp_path / "late"
    late.write_text(json.dumps({"processes": victim.processes, "mark": "late", "ahead_s": 5, "drift": 0}))
    assert "traces it" in begin(late, "clock").errors


def test_the_functions_of_this_machine_are_found_in_its_page() -> None:
    page = our_page()
    assert len(set(page.entries)) == len(FUNCTIONS)
    assert page.right() != page.wrong()
    assert all(word[:1] == b"\xe9" for word in page.wrong().values())


def test_a_page_without_room_or_without_these_functions_is_told() -> None:
    page = our_page().image
    with pytest.raises(Unsuitable, match="to spare"):
        Page.of(page[: page.rindex(b"GCC")])
    with pytest.raises(Unsuitable, match="no function __vdso_clock_gettime"):
        Page.of(page.replace(b"__vdso_clock_gettime", b"__vdso_clock_nothing"))


def test_a_thread_is_in_the_way_only_where_it_would_run_into_half_a_change() -> None:
    page = our_page()
    entry = page.entries[0]
    assert [False, True, True, False] == [page.is_in_the_way(entry + step) for step in (0, 1, 7, 8)]
    assert page.is_in_the_way(page.block)
    assert not page.is_in_the_way(len(page.image))


def test_a_jump_leads_into_the_code_of_its_own_function() -> None:
    page = our_page()
    for entry, word in page.wrong().items():
        (distance,) = struct.unpack("<i", word[1:5])
        assert page.block <= entry + 5 + distance < len(page.image)
