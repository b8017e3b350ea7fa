"""A step of the wall clock moves no deadline: not in this process, and not in the next one."""

from __future__ import annotations

from pathlib import Path

from target_stack.agent.steady import FILE, steady_clock


class Clocks:
    """A wall clock that can be stepped, and a monotonic one."""

    def __init__(self) -> None:
        self.unix_s, self.mono_s = 1_800_000_000.0, 500.0

    def steady(self, folder: Path, boot: str = "one") -> float:
        return steady_clock(folder, boot, lambda: self.unix_s, lambda: self.mono_s)()

    def pass_by(self, seconds: float) -> None:
        self.unix_s += seconds
        self.mono_s += seconds


def test_it_is_unix_time_when_nobody_has_stepped_the_clock(tmp_path: Path) -> None:
    clocks = Clocks()
    clocks.steady(tmp_path)
    clocks.pass_by(10)
    assert clocks.steady(tmp_path) == 1_800_000_010.0


def test_a_stepped_clock_moves_neither_a_running_one_nor_the_successor_s(tmp_path: Path) -> None:
    clocks = Clocks()
    running = steady_clock(tmp_path, "one", lambda: clocks.unix_s, lambda: clocks.mono_s)
    clocks.unix_s += 3600
    clocks.pass_by(1)
    assert (running(), clocks.steady(tmp_path)) == (1_800_000_001.0, 1_800_000_001.0)


def test_another_boot_compares_the_clocks_anew(tmp_path: Path) -> None:
    clocks = Clocks()
    clocks.steady(tmp_path, "one")
    clocks.mono_s = 3.0
    assert clocks.steady(tmp_path, "two") == 1_800_000_000.0


def test_a_torn_file_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"boot": "one", "unix')
    assert Clocks().steady(tmp_path) == 1_800_000_000.0
