"""Times one attempt and names its outcome; a pure state machine over what the socket said.

    reply(status, headers) ─► chunk(bytes)* ─► ended() | broken(why) | timed_out() | given_up(why) ─► outcome

Only an answer that is whole, said so for every choice, held no error and was not empty is a success. What went wrong
on our own side of the wire, or after the answer was complete, is indeterminate and never held against the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chaos.journal.record import Outcome
from chaos.load.answer import Answer, Kind
from chaos.load.json_answer import is_json_like
from chaos.load.markers import foreign, marker_of
from chaos.load.personas import Ending
from chaos.load.prompts import Prompt
from chaos.load.sse import SseParser
from chaos.spec.model import Load

LONGEST_BODY = 16 * 2**20
REFUSALS = (401, 403)
"""Statuses that say: you may not."""

_KINDS: Mapping[str, Kind] = {"chat": "chat", "rag": "chat", "agent": "task"}
_End = Literal["ended", "broken", "timeout", "ours"]


@dataclass(frozen=True)
class Question:
    """What the stopwatch must know of a request: due time, bounds in seconds, expected texts and JSON.

    `refused`: the right answer is a refusal, and an answer that does as asked is a failure. `marker` is the word that
    no other request has, where there is one.
    """

    intended_s: float
    kind: Kind = "chat"
    expect: tuple[str, ...] = ()
    ttft_s: float | None = None
    e2e_s: float | None = None
    refused: bool = False
    marker: str | None = None
    expect_json: Any = None

    @classmethod
    def of(cls, load: Load, intended_s: float, prompt: Prompt, trace_id: str) -> Question:
        """The question that a request of this load puts."""
        return cls(
            intended_s=intended_s,
            kind=_KINDS.get(load.route, "json"),
            expect=prompt.expect,
            ttft_s=None if load.slo.ttft is None else float(load.slo.ttft),
            e2e_s=None if load.slo.e2e is None else float(load.slo.e2e),
            refused=prompt.refused,
            marker=marker_of(trace_id) if load.marked else None,
            expect_json=prompt.expect_json,
        )


class Stopwatch:
    """One attempt. All times are handed in, in seconds since the run began."""

    def __init__(self, question: Question, sent_s: float) -> None:
        """Sent just now."""
        self._question = question
        self._answer = Answer(question.kind)
        self._sse: SseParser | None = None
        self._body = bytearray()
        self._last_piece_s: float | None = None
        self._gaps: list[float] = []
        self._overheard: dict[str, None] = {}
        self._headers: Mapping[str, str] = {}
        self._end: tuple[_End, str] | None = None
        self.sent_s = sent_s
        self.first_token_s: float | None = None
        self.end_s = sent_s
        self.status = 0

    def reply(self, now_s: float, status: int, headers: Mapping[str, str]) -> None:
        """Status line and headers came."""
        self.status = status
        self.end_s = now_s
        self._headers = {name.lower(): value for name, value in headers.items()}
        if status == 200 and self._headers.get("content-type", "").startswith("text/event-stream"):
            self._sse = SseParser()

    def chunk(self, now_s: float, data: bytes) -> None:
        """Bytes of the body came, cut anywhere."""
        if self._answer.done:
            return
        self.end_s = now_s
        if self._sse is None:
            self._body += data[: LONGEST_BODY - len(self._body)]
            return
        for event in self._sse.feed(data):
            self._overhear(event)
            if self._answer.event(event):
                self._piece(now_s)
        self._answer.malformed = self._answer.malformed or self._sse.overflow

    def ended(self, now_s: float) -> None:
        """The body ended as HTTP says it should."""
        if self._sse is None:
            self._overhear(self._body)
        if self._sse is None and self.status == 200 and self._answer.body(bytes(self._body)):
            self._piece(now_s)
        self._close(now_s, "ended", "")

    def broken(self, now_s: float, why: str) -> None:
        """The connection failed: connect_refused, reset, cut, ..."""
        self._close(now_s, "broken", why)

    def timed_out(self, now_s: float) -> None:
        """The client's own patience ran out."""
        self._close(now_s, "timeout", "timeout")

    def given_up(self, now_s: float, why: str) -> None:
        """The harness itself could not go on: stopped, out of descriptors, ..."""
        self._close(now_s, "ours", why)

    def _overhear(self, data: bytes | bytearray) -> None:
        """A frame or body, whatever it is: another's words may stand in an error, in a tool call, in reasoning."""
        if self._question.marker is not None:
            found = foreign(data.decode(errors="replace"), self._question.marker)
            self._overheard.update(dict.fromkeys(found.split()))

    def _piece(self, now_s: float) -> None:
        if self._last_piece_s is None:
            self.first_token_s = now_s
        else:
            self._gaps.append(now_s - self._last_piece_s)
        self._last_piece_s = now_s

    def _close(self, now_s: float, end: _End, why: str) -> None:
        """The first end counts; a stream that said [DONE] ended there."""
        if self._end is None:
            self._end = (end, why)
            self.end_s = self.end_s if self._answer.done and self._sse else now_s

    @property
    def gaps_s(self) -> tuple[float, ...]:
        """Pauses between pieces of the answer."""
        return tuple(self._gaps)

    @property
    def tokens(self) -> int:
        """Tokens of the answer."""
        return self._answer.tokens

    @property
    def served_by(self) -> str:
        """Who says it answered."""
        return self._headers.get("x-served-by", "")

    @property
    def degraded(self) -> str:
        """What the answer says it lacks."""
        return self._headers.get("x-degraded", "")

    @property
    def answer_ok(self) -> bool | None:
        """Whether every expected text is in the answer, whatever its case, and it is the expected JSON; None when there
        is nothing that it should be.
        """
        asked, text = self._question, self._answer.text
        if not asked.expect and asked.expect_json is None:
            return None
        return _contains(text, asked.expect) and (asked.expect_json is None or is_json_like(text, asked.expect_json))

    @property
    def leaked(self) -> str | None:
        """Markers of other requests in any frame or in the text that the frames make up; None when requests carry none.

        One that began in one frame and ended in the next is in the text only.
        """
        if self._question.marker is None:
            return None
        told = foreign(self._answer.text, self._question.marker)
        return " ".join(dict.fromkeys((*self._overheard, *told.split())))

    @property
    def retry_after_s(self) -> float | None:
        """Seconds that the reply asks to wait (the date form is not read)."""
        text = self._headers.get("retry-after", "").strip()
        return float(text) if text.isascii() and text.isdigit() else None

    @property
    def ending(self) -> Ending:
        """What the client's next move depends on."""
        return Ending(self.outcome()[0], self.status, self.retry_after_s)

    def outcome(self) -> tuple[Outcome, str]:
        """The outcome and the short reason for it."""
        end, why = self._end or ("ours", "unfinished")
        if self._question.refused and self.status in (200, *REFUSALS):
            return ("failed", "not_refused") if self.status == 200 else ("good", "")
        if self.status not in (0, 200):  # the front door has said no; how that reply ended adds nothing
            return ("shed" if self.status in (429, 503) else "failed"), f"status_{self.status}"
        complete = self._answer.finished and not self._answer.error
        if end != "ended" and not (complete and self._answer.done):
            return self._cut_short(end, why, complete)
        complaint = self._answer.complaint
        if complaint:
            return "failed", complaint
        if not self._answer.done:
            return "indeterminate", "no_done"
        return self._success()

    def _cut_short(self, end: _End, why: str, complete: bool) -> tuple[Outcome, str]:
        """It did not come to its end: whose doing was it?"""
        if self._answer.error:
            return "failed", "error_frame"
        if end == "ours":
            return "indeterminate", why
        if complete:
            return "indeterminate", f"{why}_after_finish"
        return ("abandoned" if end == "timeout" else "failed"), why

    def _success(self) -> tuple[Outcome, str]:
        """Whole and not empty: in time, and without anything missing? A late answer is late, degraded or not."""
        asked, ttft_s = self._question, self.first_token_s
        if asked.ttft_s is not None and ttft_s is not None and ttft_s - asked.intended_s > asked.ttft_s:
            return "late", "slo_ttft"
        if asked.e2e_s is not None and self.end_s - asked.intended_s > asked.e2e_s:
            return "late", "slo_e2e"
        return ("degraded", self.degraded) if self.degraded else ("good", "")


def _contains(text: str, expected: Iterable[str]) -> bool:
    found = text.casefold()
    return all(want.casefold() in found for want in expected)
