"""report.md: the verdict first, then what was done, whether it bit, what users felt, and how to do it again.

Written for somebody who has been woken up: short sentences, numbers with units, nothing to click.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from chaos.report.facts import (
    FELT_COLUMNS,
    Facts,
    bite,
    felt,
    found,
    gone,
    lateness_of,
    replay_command,
    span,
    timeline,
    wanted,
)
from chaos.report.plain import plain

_MARKUP = re.compile(r"[\\`|<>*\[\]]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])")
"""Characters that could become markup; an underscore inside a word cannot."""


def to_markdown(facts: Facts) -> str:
    """The whole page."""
    parts = (
        _head(facts),
        _done(facts),
        _felt(facts),
        _hypotheses(facts),
        _findings(facts),
        _timeline(facts),
        _preconditions(facts),
        _again(facts),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def cell(text: object) -> str:
    """Text that cannot break out of a table cell or a line, nor become markup."""
    words = plain(text) or "-"
    return _MARKUP.sub(r"\\\g<0>", words)


def code(text: object) -> str:
    """A code span, in which only a backtick could become markup."""
    return f"`{_unticked(text)}`"


def _unticked(text: object) -> str:
    return plain(text).replace("`", "'")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; cells are escaped."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def _head(facts: Facts) -> str:
    verdict, experiment = facts.verdict, facts.experiment
    lines = [
        f"# {verdict.verdict.upper()}: {cell(verdict.title)}",
        "",
        f"**{cell(verdict.why)}.** Exit code {verdict.exit_code}.",
        "",
        cell(experiment.why),
        "",
        f"- experiment: {code(verdict.experiment)}, owner {cell(experiment.owner)}",
        f"- run: {code(verdict.run)}, profile {cell(verdict.profile)}, seed {verdict.seed}",
    ]
    lines += [f"- planted weakness: {cell(name)}" for name in verdict.weaknesses]
    lines += [f"- runbook: `runbooks/{experiment.runbook}.md`"] if experiment.runbook else []
    return "\n".join([*lines, *(f"- note: {cell(note)}" for note in verdict.notes)])


def _done(facts: Facts) -> str:
    head = ("fault", "kind", "on", "in force", "did it bite?", "seen by", "gone", "layer really broken", "late by")
    rows = [
        (
            proof.name,
            proof.kind,
            ", ".join(proof.targets) or "nothing",
            span(proof, facts.zero),
            bite(proof),
            proof.observer,
            gone(proof),
            proof.fidelity,
            lateness_of(proof),
        )
        for proof in facts.verdict.faults
    ]
    return f"## What was done to whom\n\n{table(head, rows)}\n\nTimes count from the start of the load."


def _felt(facts: Facts) -> str:
    return f"## What users felt\n\n{table(FELT_COLUMNS, felt(facts))}"


def _hypotheses(facts: Facts) -> str:
    head = ("hypothesis", "verdict", "found (95 % sure each side)", "wanted", "measure", "window", "n")
    rows = [(h.name, h.verdict, found(h), wanted(h), h.measure, h.window or "-", h.n) for h in facts.verdict.hypotheses]
    doubts = [
        f"- **{cell(h.name)}**: {cell(h.why)}" + (f". To settle: {cell(h.to_settle)}." if h.to_settle else "")
        for h in facts.verdict.hypotheses
        if h.verdict == "inconclusive" and all(c.held for c in facts.verdict.preconditions)
    ]
    text = f"## Hypotheses\n\n{table(head, rows)}"
    return text + ("\n\nUndecided:\n\n" + "\n".join(doubts) if doubts else "")


def _findings(facts: Facts) -> str:
    refuted = [h for h in facts.verdict.hypotheses if h.verdict == "refuted"]
    if not refuted:
        return ""
    owner, page = facts.experiment.owner, facts.experiment.runbook
    lines = [f"- **{cell(h.name)}** does not hold: {cell(h.why)}" for h in refuted]
    where = f" What to do meanwhile: `runbooks/{page}.md`." if page else ""
    return "## Findings\n\n" + "\n".join(lines) + f"\n\nFor {cell(owner)}.{where}"


def _timeline(facts: Facts) -> str:
    return "## Timeline\n\n" + table(("after load start", "what"), ((f"{m.at:.2f}s", m.text) for m in timeline(facts)))


def _preconditions(facts: Facts) -> str:
    rows = [(c.name, "yes" if c.held else "NO", c.why) for c in facts.verdict.preconditions]
    return "## Could the numbers be trusted?\n\n" + table(("precondition", "held", "why"), rows)


def _again(facts: Facts) -> str:
    replay = _unticked(replay_command(facts.experiment, facts.verdict))
    judge = _unticked(f"brownout judge {shlex.quote(facts.run_dir)}")
    return f"## Do it again\n\n```\n{replay}\n{judge}\n```\n\nPlan fingerprint {code(facts.verdict.fingerprint)}."
