"""What a person sees while a run goes on: a live panel on a terminal, one line an event everywhere else.

Both are fed with the same journal records and samples and know nothing about the run itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from chaos.journal.live import LiveWindow
from chaos.journal.record import Sample
from chaos.report.events import told

LIVE_OVER_S = 3.0


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


@dataclass
class Lines:
    """One line for each event that a person would want to know of."""

    say: Callable[[str], None]

    def __enter__(self) -> Self:
        """Nothing to begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to end."""

    def tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Say it, unless it is not worth a line."""
        line = told(kind, fields)
        if line is not None:
            self.say(f"{fields['t']:7.2f}s  {line}")


@dataclass
class Panel:
    """A panel of the last seconds, with the event lines running above it."""

    title: str
    lasts_s: float
    console: Console
    _live: Live = field(init=False)
    _window: LiveWindow = field(default_factory=lambda: LiveWindow(LIVE_OVER_S * 2))
    _in_force: dict[str, str] = field(default_factory=dict)
    _now_s: float = 0.0
    _started_s: float = 0.0
    _drawn_s: float = -1.0

    def __enter__(self) -> Self:
        """Take the bottom of the terminal."""
        self._live = Live(self._draw(), console=self.console, refresh_per_second=4, transient=True)
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back."""
        self._live.stop()

    def tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Show it."""
        if kind == "sample":
            self._take(fields["sample"])
            return
        self._now_s = float(fields["t"])
        if kind == "load_started":
            self._started_s = self._now_s
        elif kind == "fault_injected":
            self._in_force[fields["fault"]] = f"{fields['fault']} on {', '.join(fields['targets']) or 'nobody'}"
        elif kind == "fault_reverted":
            self._in_force.pop(fields["fault"], None)
        line = told(kind, fields)
        if line is not None:
            self.console.print(f"[dim]{self._now_s:7.2f}s[/dim]  {line}", highlight=False)
        self._live.update(self._draw())

    def _take(self, sample: Sample) -> None:
        self._window.feed(sample)
        self._now_s = max(self._now_s, sample.end_s)
        if self._now_s - self._drawn_s > 0.25:
            self._drawn_s = self._now_s
            self._live.update(self._draw())

    def _draw(self) -> Group:
        recent = self._window.recent(self._now_s, LIVE_OVER_S)
        success = self._window.success_ratio(self._now_s, LIVE_OVER_S)
        waits = sorted(s.first_token_s - s.intended_s for s in recent if s.first_token_s is not None)
        table = Table.grid(padding=(0, 3))
        table.add_row("time", f"{max(0.0, self._now_s - self._started_s):.0f}s of {self.lasts_s:.0f}s")
        table.add_row("success", "-" if success is None else f"{success:.1%} of the last {LIVE_OVER_S:.0f}s")
        table.add_row("first token", f"p50 {waits[len(waits) // 2] * 1000:.0f}ms" if waits else "-")
        table.add_row("in force", Text(", ".join(self._in_force.values()) or "nothing", style="bold red" if self._in_force else ""))
        table.add_row("", Text("Ctrl-C reverts everything and ends the run", style="dim"))
        return Group(Text(self.title, style="bold"), table)
