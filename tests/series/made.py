"""Series whose runs are told by one letter each: u upheld, r refuted, i inconclusive, g ended by a guard. Their waits
grow by 2 % from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chaos.series.order import Entry, Order, Series, seed_of
from chaos.verdict.outcome import FaultProof, Judged, Precondition, Truth, Verdict, exit_code_of

NAME = "series-2026-12-01T09-00-00Z-1a2b"
ORDER = Order(
    experiment="retrieval/vector_store_outage",
    title="The vector store goes away for fifteen seconds",
    path="experiments/retrieval/vector_store_outage.yaml",
    seed=7,
    most=0,
    profile="embedded",
)
TRUTHS: Mapping[str, Truth] = {"u": "upheld", "r": "refuted", "i": "inconclusive", "g": "inconclusive"}
ENDED = Precondition("ran to its end", held=True, why="every step was carried out")
UNMET = {
    "i": Precondition("load delivered", held=False, why="80 of 80 requests sent, p99 2214.9ms late"),
    "g": Precondition("ran to its end", held=False, why="stopped: success_ratio below 50%"),
}
OUTAGE = FaultProof(
    name="outage",
    kind="process_kill",
    targets=("vector-store",),
    fidelity="process",
    injected_at=16.0,
    confirmed=True,
    observer="/proc and a connect",
    what="3 processes gone; connect refused",
    reverted_at=31.0,
    reverted_by="timeline",
    gone=True,
)


def run(letter: str, number: int = 1) -> Verdict:
    """One run of this kind."""
    truth = TRUTHS[letter]
    unmet = UNMET.get(letter)
    why = {"u": "all 4 hypotheses hold", "r": "3 of 4 hypotheses refuted: users are served, no slow failure, ..."}
    return Verdict(
        run=folder(number),
        experiment=ORDER.experiment,
        title=ORDER.title,
        fingerprint=f"sha256:{seed_of(ORDER.seed, number):08x}",
        seed=seed_of(ORDER.seed, number),
        profile="embedded",
        weaknesses=(),
        verdict=truth,
        exit_code=3 if letter == "g" else exit_code_of(truth),
        why=f"not met: {unmet.name} ({unmet.why})" if unmet else why[letter],
        preconditions=(unmet,) if letter == "g" and unmet else (ENDED, *((unmet,) if unmet else ())),
        faults=(OUTAGE,),
        hypotheses=tuple(_answers(letter, truth, 1 + 0.02 * (number - 1))),
        requests={"planned": 900, "good": 600, "degraded": 300}
        | ({"good": 525, "failed": 75} if letter == "r" else {}),
    )


def _answers(letter: str, truth: Truth, slower: float) -> list[Judged]:
    """A share, a wait, a time to recover, and a count that nothing ever breaks."""
    bad = letter == "r"
    wait, back = (math.inf, 14.0) if bad else (0.07 * slower, 2.0)
    served, low, high = (0.75, 0.7068, 0.7888) if bad else (1.0, 0.9911, 1.0)
    fine: Truth = "inconclusive" if letter in UNMET else "upheld"
    span = (30.0, math.inf) if bad else (wait * 0.9, wait * 1.1)
    return [
        Judged("users are served", truth, "success_ratio", "ratio", "outage", served, (low, high), 300,
               {"at_least": 0.99}, f"{served:.0%} of 300 requests"),
        Judged("no slow failure", truth, "ttft", "duration", "outage", None if bad else wait, span, 300,
               {"at_most": 1.5}, "75 of 300 waited in vain" if bad else "quick"),
        Judged("quick recovery", truth, "recovery_time", "duration", None, back, (back - 1, back), 20,
               {"at_most": 5.0}, f"back after {back:g}s, watched for 20s"),
        Judged("nothing left behind", fine, "requests_running", "count", "settled", 0.0, (0.0, 0.0), 8,
               {"at_most": 0.0}, "0"),
    ]  # fmt: skip


def folder(number: int) -> str:
    """The name of a run directory."""
    return f"2026-12-01T09-{number:02d}-00Z-ab12"


def series(letters: str, most: int | None = None, changes: Mapping[str, Any] | None = None) -> Series:
    """A series whose runs so far ended like this; `most` are asked for, by default all are done."""
    order = replace(ORDER, most=most or len(letters), **(changes or {}))
    entries = tuple(Entry(n, folder(n), run(letter, n)) for n, letter in enumerate(letters, start=1))
    return Series(NAME, order, entries)
