"""How much is written down: metadata of every request, token times of few; and how often retrieval is examined."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

_TRACE_TAIL = 8  # hexadecimal digits


@dataclass(frozen=True)
class LogSettings:
    """The structured log. `token_detail_share` is the part of all requests whose every token gets its time."""

    token_detail_share: float = 0.01
    file_bytes: int = 16 << 20
    files: int = 4


def is_detailed(trace_id: str, share: float) -> bool:
    """Whether a request is one of those: the same answer for a trace everywhere and always."""
    return int(trace_id[-_TRACE_TAIL:], 16) < int(share * 16**_TRACE_TAIL)


@dataclass(frozen=True)
class RecallSettings:
    """Standard questions that the gateway asks its own retrieval. `kind: none` asks none.

    `look_at: name` is content with the right document; `words` also wants it to say what is known to be true, which an
    old edition of it does not.

    Recall has dropped when fewer than `drop_below` of the last `window` questions found their document, and is restored
    at `restore_at`.
    """

    kind: Literal["probe", "none"] = "probe"
    look_at: Literal["words", "name"] = "words"
    period_s: float = 5.0
    questions: int = 4
    window: int = 8
    drop_below: float = 0.8
    restore_at: float = 0.95


class RecallWatch:
    """Judges the answers. It starts content: nothing is known, and nothing has been lost."""

    def __init__(self, settings: RecallSettings) -> None:
        """No question has been asked."""
        self._settings = settings
        self._hits: deque[bool] = deque(maxlen=settings.window)
        self.dropped = False

    @property
    def ratio(self) -> float | None:
        """Share of the last questions that found their document; None before the first."""
        return sum(self._hits) / len(self._hits) if self._hits else None

    def round(self, hits: list[bool]) -> Literal["recall_dropped", "recall_restored"] | None:
        """Take the answers of one round; the event that they make."""
        self._hits.extend(hits)
        ratio = self.ratio
        if ratio is None:
            return None
        if not self.dropped and ratio < self._settings.drop_below:
            self.dropped = True
            return "recall_dropped"
        if self.dropped and ratio >= self._settings.restore_at:
            self.dropped = False
            return "recall_restored"
        return None
