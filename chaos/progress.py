"""What a person sees while a run goes on: a live panel on a terminal, one line an event everywhere else.

Both are fed with the same journal records and samples, tell the same story as the report, and know nothing about the
run itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from chaos.journal.live import LiveWindow
from chaos.journal.record import Sample
from chaos.report.events import Moment, Story
from chaos.report.plain import plain
from chaos.verdict.statistics import quantile
from chaos.verdict.wording import say

LIVE_OVER_S = 3.0
REDRAWN_EVERY_S = 0.25
_STYLE = {"harm": "red", "relief": "green", "stack": "magenta", "run": ""}


class Progress(Protocol):
    """Hears a run as it happens; a context manager for its length."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing."""
        ...

    def tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """One journal record, or one sample as ("sample", {"sample": ...})."""
        ...


@dataclass(frozen=True)
class Overheard:
    """Whatever shows the run, with one more who hears it."""

    shown: Progress
    also: Callable[[str, Mapping[str, Any]], None]

    def __enter__(self) -> Self:
        """Begin to show."""
        self.shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing."""
        self.shown.__exit__(kind, error, trace)

    def tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Both hear it, the other one first: it never raises."""
        self.also(kind, fields)
        self.shown.tell(kind, fields)


@dataclass
class Lines:
    """One line for each moment of the story; times count from the start of the load, as in the plan and the report."""

    say: Callable[[str], None]
    _story: Story = field(default_factory=Story)

    def __enter__(self) -> Self:
        """Nothing to begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say what was held back, should the run have ended without saying so itself."""
        self._say(self._story.rest())

    def tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Say it, unless it is not worth a line."""
        if kind != "sample":
            self._say(self._story.hear(float(fields["t"]), kind, fields))

    def _say(self, moments: tuple[Moment, ...]) -> None:
        for moment in moments:
            self.say(f"{moment.clock:>8}  {moment.text}")


@dataclass
class Panel:
    """A panel of the last seconds, with the lines of the story running above it."""

    title: str
    lasts_s: float
    console: Console
    _live: Live = field(init=False)
    _story: Story = field(default_factory=Story)
    _window: LiveWindow = field(default_factory=lambda: LiveWindow(LIVE_OVER_S * 2))
    _in_force: dict[str, str] = field(default_factory=dict)
    _now_s: float = 0.0
    _load_start_s: float | None = None
    _drawn_s: float = -1.0

    def __enter__(self) -> Self:
        """Take the bottom of the terminal."""
        self._live = Live(self._draw(), console=self.console, auto_refresh=False, transient=True)
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back."""
        self._print(self._story.rest())
        self._live.stop()

    def tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Show it."""
        if kind == "sample":
            self._take(fields["sample"])
            return
        self._now_s = max(self._now_s, float(fields["t"]))
        if kind == "load_started":
            self._load_start_s = float(fields["at"])
        elif kind == "fault_injected":
            self._in_force[fields["fault"]] = f"{fields['fault']} on {', '.join(fields['targets']) or 'nothing'}"
        elif kind == "fault_reverted":
            self._in_force.pop(fields["fault"], None)
        self._print(self._story.hear(float(fields["t"]), kind, fields))
        self._redraw()

    def _take(self, sample: Sample) -> None:
        self._window.feed(sample)
        self._now_s = max(self._now_s, sample.end_s)
        if self._now_s - self._drawn_s > REDRAWN_EVERY_S:
            self._redraw()

    def _print(self, moments: tuple[Moment, ...]) -> None:
        """As Text, so that brackets in what a stack says are not taken for markup."""
        for moment in moments:
            line = Text(f"{moment.clock:>8}  ", style="dim")
            self.console.print(line.append(moment.text, style=f"not dim {_STYLE[moment.tone]}".rstrip()))

    def _redraw(self) -> None:
        self._drawn_s = self._now_s
        self._live.update(self._draw(), refresh=True)

    def _draw(self) -> Group:
        in_force = plain(", ".join(self._in_force.values()))
        rows = {
            "time": Text(self._clock()),
            "served": Text(self._served()),
            "first token": Text(self._waits()),
            "in force": Text(in_force or "nothing", style="bold red" if in_force else ""),
        }
        table = Table.grid(padding=(0, 3))
        for name, value in rows.items():
            table.add_row(Text(name, style="dim"), value)
        ending = Text("Ctrl-C reverts everything and ends the run", style="dim")
        return Group(Text(), Text(plain(self.title), style="bold"), table, ending)

    def _clock(self) -> str:
        if self._load_start_s is None:
            return "waiting for the gate"
        gone_s = max(0.0, self._now_s - self._load_start_s)
        over = ", waiting for the last answers" if gone_s > self.lasts_s else ""
        return f"{min(gone_s, self.lasts_s):.0f}s of {self.lasts_s:.0f}s{over}"

    def _served(self) -> str:
        share = self._window.success_ratio(self._now_s, LIVE_OVER_S)
        if share is None:
            return "-"
        bad = self._window.counts(self._now_s, LIVE_OVER_S)
        told = ", ".join(
            f"{bad[name]} {name}" for name in ("degraded", "shed", "late", "failed", "abandoned") if bad[name]
        )
        return f"{say(share, 'ratio')} of the last {LIVE_OVER_S:.0f}s" + (f" ({told})" if told else "")

    def _waits(self) -> str:
        """A request that ended without a token waited without end, as in the verdict."""
        recent = self._window.recent(self._now_s, LIVE_OVER_S)
        waits = [math.inf if s.first_token_s is None else s.first_token_s - s.intended_s for s in recent]
        if not waits:
            return "-"
        values = np.array(waits)
        return ", ".join(f"p{q * 100:.0f} {say(quantile(values, q), 'duration')}" for q in (0.5, 0.99))
