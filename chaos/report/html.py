"""report.html: the same facts as report.md in one file that needs nothing else: no network, no script, fit for a phone.

Every text that comes from outside (names, reasons, events of the stack) is escaped; there is no other way into the
page.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from html import escape

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
from chaos.report.timeline_svg import to_svg

STYLE = """
:root{color-scheme:light
dark;--back:#fff;--ink:#1f2328;--rule:#d0d7de;--soft:#f6f8fa;--upheld:#1a7f37;--refuted:#cf222e;
--inconclusive:#9a6700} @media (prefers-color-
scheme:dark){:root{--back:#0d1117;--ink:#e6edf3;--rule:#30363d;--soft:#161b22;--upheld:#3fb950;
--refuted:#ff7b72;--inconclusive:#d29922}} body{background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-
serif;max-width:68rem;margin:0 auto;padding:1rem} h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.tag{border-radius:.4rem;padding:.1rem .5rem;color:var(--back);font-weight:600;white-space:nowrap}
.upheld{background:var(--upheld)}.refuted{background:var(--refuted)}.inconclusive{background:var(--inconclusive)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem} th,td{border:1px solid var(--rule);padding:.3rem
.6rem;text-align:left;vertical-align:top}th{background:var(--soft)}
pre{background:var(--soft);padding:.8rem;overflow-x:auto}svg{width:100%;height:auto;min-
width:36rem}.no{color:var(--refuted)}
"""


class Markup(str):
    """Text that is markup already; everything else gets escaped."""

    __slots__ = ()


def to_html(facts: Facts) -> str:
    """The whole page."""
    verdict = facts.verdict
    body = "\n".join((_head(facts), _picture(facts), _done(facts), _felt(facts), _hypotheses(facts), _rest(facts)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(f'{verdict.verdict}: {verdict.title}')}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def tag(truth: str) -> Markup:
    """A coloured verdict."""
    return Markup(f'<span class="tag {escape(truth)}">{escape(truth)}</span>')


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table that scrolls by itself on a narrow screen; cells are escaped unless they are Markup."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table>\n<tr>{top}</tr>\n' + "\n".join(lines) + "\n</table></div>"


def _cell(value: object) -> str:
    return value if isinstance(value, Markup) else escape(str(value))


def _yes(held: bool) -> object:
    return "yes" if held else Markup('<strong class="no">NO</strong>')


def _head(facts: Facts) -> str:
    verdict, experiment = facts.verdict, facts.experiment
    about = [
        f"experiment {verdict.experiment}",
        f"run {verdict.run}",
        f"profile {verdict.profile}",
        f"seed {verdict.seed}",
        f"owner {experiment.owner}",
    ]
    about += [f"planted weakness {name}" for name in verdict.weaknesses]
    about += [f"runbook runbooks/{experiment.runbook}.md"] if experiment.runbook else []
    notes = "".join(f"<p>Note: {escape(note)}</p>" for note in verdict.notes)
    return (
        f"<h1>{tag(verdict.verdict)} {escape(verdict.title)}</h1>\n"
        f"<p><strong>{escape(verdict.why)}.</strong> Exit code {verdict.exit_code}.</p>\n"
        f"<p>{escape(experiment.why)}</p>\n<p>{escape(' · '.join(about))}</p>{notes}"
    )


def _picture(facts: Facts) -> str:
    legend = "Shaded: a fault in force. Dashed: an event told by the stack."
    return f'<div class="wide">{to_svg(facts)}</div>\n<p>{legend}</p>'


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
    return f"<h2>What was done to whom</h2>\n{table(head, rows)}\n<p>Times count from the start of the load.</p>"


def _felt(facts: Facts) -> str:
    return f"<h2>What users felt</h2>\n{table(FELT_COLUMNS, felt(facts))}"


def _hypotheses(facts: Facts) -> str:
    head = ("hypothesis", "verdict", "found (95 % sure each side)", "wanted", "measure", "window", "n", "in words")
    rows = [
        (
            h.name,
            tag(h.verdict),
            found(h),
            wanted(h),
            h.measure,
            h.window or "-",
            h.n,
            h.why + (f". To settle: {h.to_settle}" if h.to_settle else ""),
        )
        for h in facts.verdict.hypotheses
    ]
    return f"<h2>Hypotheses</h2>\n{table(head, rows)}"


def _rest(facts: Facts) -> str:
    moments = table(("after load start", "what"), ((f"{m.at:.2f}s", m.text) for m in timeline(facts)))
    trust = table(("precondition", "held", "why"), ((c.name, _yes(c.held), c.why) for c in facts.verdict.preconditions))
    judge = f"brownout judge {shlex.quote(facts.run_dir)}"
    again = escape(f"{replay_command(facts.experiment, facts.verdict)}\n{judge}")
    return (
        f"<h2>Timeline</h2>\n{moments}\n<h2>Could the numbers be trusted?</h2>\n{trust}\n"
        f"<h2>Do it again</h2>\n<pre>{again}</pre>\n<p>Plan fingerprint {escape(facts.verdict.fingerprint)}</p>"
    )
