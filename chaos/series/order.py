"""What a series is asked to do, which seed each of its runs has, and which run is due next.

Run 1 has the seed of the series, so that it is the run that the same command without repetition makes. The seed of run
i from 2 on is the first four bytes of SHA-256 of the text `SEED/run/i`. So every run can be made again alone, and two
series with neighbouring seeds share no run: both may be counted together.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Literal, Self

from chaos.verdict.outcome import Verdict

SEED_RULE = "run 1: the seed itself; run i: the first 4 bytes of SHA-256 of `SEED/run/i`"

Keep = Literal["all", "refuted"]
"""`refuted`: of upheld runs only verdict.json stays."""


def seed_of(seed: int, number: int) -> int:
    """The seed of run `number` (from 1) of the series with this seed."""
    return seed if number == 1 else int.from_bytes(hashlib.sha256(f"{seed}/run/{number}".encode()).digest()[:4])


@dataclass(frozen=True)
class Order:
    """What is asked. `most` is the number of runs; a hunt ends before that with the first refuted one.

    `path` is the experiment's file as it was named, `set_` the options that changed it.
    """

    experiment: str
    title: str
    path: str
    seed: int
    most: int
    hunt: bool = False
    keep: Keep = "all"
    profile: str = ""
    weaknesses: tuple[str, ...] = ()
    set_: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One run that counts. `folder` is the name of its run directory inside the series directory."""

    number: int
    folder: str
    verdict: Verdict
    whole: bool = True

    @property
    def seed(self) -> int:
        """With which it can be run again alone."""
        return self.verdict.seed


@dataclass(frozen=True)
class Series:
    """A series so far. `name` is the name of its directory; `cut_short` are directories of runs that were ended from
    outside, say nothing about the stack, and are made again.
    """

    name: str
    order: Order
    entries: tuple[Entry, ...] = ()
    cut_short: tuple[str, ...] = ()

    def due(self) -> int | None:
        """The number of the next run; None when the series is over."""
        if self.order.hunt and self.first_refuted:
            return None
        done = {entry.number for entry in self.entries}
        return next((number for number in range(1, self.order.most + 1) if number not in done), None)

    @property
    def first_refuted(self) -> Entry | None:
        """The run that everybody wants to see."""
        return next((entry for entry in self.entries if entry.verdict.verdict == "refuted"), None)

    def with_run(self, entry: Entry) -> Self:
        """The series with one more run, or with what is now known of one."""
        others = (e for e in self.entries if e.number != entry.number)
        return replace(self, entries=tuple(sorted((*others, entry), key=lambda e: e.number)))

    def without(self, folder: str) -> Self:
        """The series with one more run that was cut short."""
        return replace(self, cut_short=tuple(dict.fromkeys((*self.cut_short, folder))))


def came_to_its_end(verdict: Verdict) -> bool:
    """Whether nobody and nothing ended the run early."""
    return any(check.name == "ran to its end" and check.held for check in verdict.preconditions)
