"""The closed set of journal records, the columns of the sample and reading tables, and the outcomes of a request.

A journal line is one JSON object: `n` (count from 0), `t` (seconds since the run began, CLOCK_MONOTONIC), `kind`, the
fields of that kind, `prev` and `hash` (SHA-256, chained). Times in all three files are seconds since the run began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

JOURNAL_VERSION = 1
"""Stands in the first record. It rises when a record changes its meaning, not when fields or kinds are added. Who meets
a higher one must not judge: what looks familiar may mean something else.
"""

Kind = Literal[
    "run_started",  # version run experiment fingerprint seed profile stack weaknesses wall boot_id pid origin
    "gate",  # held why
    "load_started",  # at loads [{name planned}]; plan time 0 is `at`
    "window",  # name start end: written when the window closes
    "lease_granted",  # lease fault targets lease_s
    "fault_injected",  # fault fault_kind targets fidelity planned (t it was due); t is when inject was called
    "fault_confirmed",  # fault seen observer what took_s: the look that saw it first (seen=false: none did)
    "fault_still",  # fault seen observer what took_s: last look before the revert
    "fault_reverted",  # fault by (timeline | stop | guard | SIGINT | ...) took_s: it began at t - took_s
    "fault_gone",  # fault seen observer what took_s
    "fault_failed",  # fault step why [command]
    "event",  # name source at + free fields (dependency, replica, ...): told by the stack itself
    "guard_tripped",  # guard value bound [samples likelihood_ratio]
    "decided",  # hypotheses why: refuted whatever may still come, so the load ends here
    "stop_requested",  # by (SIGINT | SIGTERM | stop command)
    "probe_failed",  # probe target why: first of a row of failures
    "load_finished",  # loads {name: {planned sent finished}} lateness_s_p50 lateness_s_p99
    "note",  # text
    "run_finished",  # ending (completed | decided | stopped | gate_not_met | failed) why
    "seal",  # records samples readings spans: counts of all files; sha256 {file: hex} (not in seals of before)
]
KINDS: tuple[str, ...] = get_args(Kind)

Outcome = Literal["good", "degraded", "late", "shed", "failed", "indeterminate", "abandoned"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Record:
    """One journal line."""

    n: int
    t: float
    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """One attempt at one request. A request has one `final` row, whose outcome is the request's; its earlier attempts
    are not final.

    `intended_s` is when the request was due (the same on all its attempts): latency counts from there.
    `first_token_s`, `end_s` are absent when it never came so far. `status` 0 means no HTTP status. `gaps_s` are the
    pauses between tokens; on disk they are a sketch.
    """

    load: str
    request: int
    attempt: int
    final: bool
    intended_s: float
    sent_s: float
    first_token_s: float | None
    end_s: float
    outcome: Outcome
    why: str  # short reason, `` for a good one: connect_refused, timeout, status_503, no_finish_reason, error_frame
    status: int
    served_by: str
    degraded: str  # value of x-degraded, ``
    tokens: int
    gaps_s: tuple[float, ...]
    answer_ok: bool | None  # expected answer found; None when the prompt has none
    trace_id: str
    leaked: str | None = None  # markers of other requests in the answer, ``; None when requests carry none


@dataclass(frozen=True)
class ReadingRow:
    """One value of one series of one target."""

    t: float
    target: str
    series: str
    value: float


SpanKind = Literal["caller", "callee"]


@dataclass(frozen=True)
class Span:
    """One call as one of its two ends wrote it down: the caller, or the callee under the caller's span as `parent_id`.

    `trace_id` is empty for a call that nobody traced, `parent_id` for one that begins its trace. `service` is the
    target that wrote it, `name` what a caller calls (a dependency: engine, vector-store) or a callee serves (a route),
    `peer` whom a caller calls. `outcome` is `ok`, `degraded` or a word for what went wrong, `attempt` counts from 1.
    Tokens are those that were computed for this call; None: this end does not know.
    """

    trace_id: str
    span_id: str
    parent_id: str
    service: str
    kind: SpanKind
    name: str
    peer: str
    start_s: float
    end_s: float
    outcome: str
    attempt: int
    prompt_tokens: int | None
    output_tokens: int | None
