"""report.md: the verdict first, then what was done, whether it bit, what users felt, and how to do it again.

Written for somebody who has been woken up: short sentences, numbers with units, nothing to click.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chaos.report.facts import (
    FELT_COLUMNS,
    HYPOTHESIS_COLUMNS,
    HYPOTHESIS_NOTE,
    NO_LOAD,
    TIMES_NOTE,
    Facts,
    again,
    done,
    done_columns,
    doubts,
    felt,
    hypothesis_row,
    machine_note,
    refuted,
    sentence,
    timeline,
)
from chaos.report.plain import plain
from chaos.report.sparklines import SPARKLINES_NOTE, sparklines
from chaos.report.timeline_svg import PICTURE_LABEL, TIMELINE_FILE

_MARKUP = re.compile(r"[\\`|<>*\[\]]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])")
"""Characters that could become markup; an underscore inside a word cannot."""


def to_markdown(facts: Facts) -> str:
    """The whole page."""
    parts = (
        _head(facts),
        _done(facts),
        _felt(facts),
        _picture(facts),
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
        f"**{cell(sentence(verdict.why))}** Exit code {verdict.exit_code}.",
        "",
        cell(experiment.why),
        "",
        f"- experiment: {code(verdict.experiment)}, owner {cell(experiment.owner)}",
        f"- run: {code(verdict.run)}, profile {cell(verdict.profile)}, seed {verdict.seed}",
    ]
    lines += [f"- planted weakness: {cell(name)}" for name in verdict.weaknesses]
    lines += [f"- runbook: `runbooks/{experiment.runbook}.md`"] if experiment.runbook else []
    return "\n".join([*lines, *(f"- note: {cell(note)}" for note in verdict.notes)])


def _findings(facts: Facts) -> str:
    found = refuted(facts)
    if not found:
        return ""
    owner, page = facts.experiment.owner, facts.experiment.runbook
    lines = [f"- **{cell(h.name)}** does not hold: {cell(h.why)}" for h in found]
    where = f" What to do meanwhile: `runbooks/{page}.md`." if page else ""
    return "## Findings\n\n" + "\n".join(lines) + f"\n\nFor {cell(owner)}.{where}"


def _felt(facts: Facts) -> str:
    if facts.times.load_start is None:
        return f"## What users felt\n\n{NO_LOAD}"
    return f"## What users felt\n\n{table(FELT_COLUMNS, felt(facts))}\n\n{TIMES_NOTE}"


def _picture(facts: Facts) -> str:
    """The picture for whoever can draw it, blocks for a terminal."""
    lines = sparklines(facts)
    if not lines:
        return ""
    return f"## The run\n\n![{cell(PICTURE_LABEL)}]({TIMELINE_FILE})\n\n```text\n{lines}\n```\n\n{SPARKLINES_NOTE}"


def _done(facts: Facts) -> str:
    return f"## What was done to whom\n\n{table(done_columns(facts), done(facts))}"


def _hypotheses(facts: Facts) -> str:
    rows = [(h.verdict, *hypothesis_row(h)) for h in facts.verdict.hypotheses]
    text = f"## Hypotheses\n\n{table(HYPOTHESIS_COLUMNS, rows)}\n\n{HYPOTHESIS_NOTE}"
    rests = [f"- {cell(h.name)}: {cell('; '.join(h.records))}" for h in facts.verdict.hypotheses if h.records]
    text += "\n\nEach rests on:\n\n" + "\n".join(rests) if rests else ""
    undecided = [
        f"- **{cell(h.name)}**: {cell(h.why)}" + (f". To settle: {cell(h.to_settle)}." if h.to_settle else "")
        for h in doubts(facts)
    ]
    return text + ("\n\nUndecided:\n\n" + "\n".join(undecided) if undecided else "")


def _timeline(facts: Facts) -> str:
    return "## Timeline\n\n" + table(("after load start", "what"), ((m.clock, m.text) for m in timeline(facts)))


def _preconditions(facts: Facts) -> str:
    rows = [(c.name, "yes" if c.held else "NO", c.why) for c in facts.verdict.preconditions]
    text = "## Could the numbers be trusted?\n\n" + table(("precondition", "held", "why"), rows)
    note = machine_note(facts)
    return text + (f"\n\n{cell(note)}" if note else "")


def _again(facts: Facts) -> str:
    commands = "\n".join(_unticked(line) for line in again(facts).splitlines())
    return f"## Do it again\n\n```sh\n{commands}\n```\n\nPlan fingerprint {code(facts.verdict.fingerprint)}."
