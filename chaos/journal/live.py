"""The last seconds of a run as guards and the live view see them: final samples in, counts out; pure.

A sample belongs to the moment its outcome was known (`end_s`), because what is still in flight has no outcome yet.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from chaos.journal.record import Sample


class LiveWindow:
    """Remembers final samples for `keep_s` seconds."""

    def __init__(self, keep_s: float = 60.0) -> None:
        """`keep_s` is the longest window that will be asked for."""
        self._keep_s = keep_s
        self._samples: deque[Sample] = deque()

    def feed(self, sample: Sample) -> None:
        """Take one sample, roughly in order of `end_s`; attempts that are not final are ignored."""
        if not sample.final:
            return
        self._samples.append(sample)
        while self._samples[0].end_s < sample.end_s - self._keep_s:
            self._samples.popleft()

    def recent(self, now_s: float, over_s: float, load: str | None = None) -> tuple[Sample, ...]:
        """Final samples that ended in (now - over, now], in the order in which they were fed."""
        return tuple(
            sample for sample in self._samples if now_s - over_s < sample.end_s <= now_s and load in (None, sample.load)
        )

    def counts(self, now_s: float, over_s: float, load: str | None = None) -> Counter[str]:
        """Outcomes of the last seconds."""
        return Counter(sample.outcome for sample in self.recent(now_s, over_s, load))

    def ratio(self, outcomes: Iterable[str], now_s: float, over_s: float, load: str | None = None) -> float | None:
        """Share of these outcomes among all but the indeterminate ones; None when there is none."""
        counts = self.counts(now_s, over_s, load)
        total = counts.total() - counts["indeterminate"]
        return sum(counts[outcome] for outcome in outcomes) / total if total else None

    def success_ratio(self, now_s: float, over_s: float, load: str | None = None) -> float | None:
        """Good and degraded over all but indeterminate (DESIGN section 4)."""
        return self.ratio(("good", "degraded"), now_s, over_s, load)
