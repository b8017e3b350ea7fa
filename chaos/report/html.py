"""report.html: the same facts as report.md in one file that needs nothing else: no network, no script, fit for a phone.

Every text that comes from outside (names, reasons, events of the stack) is escaped; there is no other way into the
page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

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
    refuted,
    sentence,
    timeline,
    told,
)
from chaos.report.timeline_svg import to_svg

STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1f2328; --quiet: #59636e; --rule: #d0d7de; --soft: #f6f8fa;
  --upheld: #1a7f37; --refuted: #cf222e; --inconclusive: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --rule: #30363d;
  --soft: #161b22; --upheld: #3fb950; --refuted: #ff7b72; --inconclusive: #d29922; } }
* { box-sizing: border-box; }
body { background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; max-width: 64rem;
  margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.3; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
.tag { border-radius: .4rem; padding: .1rem .5rem; color: var(--back); font-weight: 600; white-space: nowrap; }
.upheld { background: var(--upheld); }
.refuted { background: var(--refuted); }
.inconclusive { background: var(--inconclusive); }
.no { color: var(--refuted); }
.quiet { color: var(--quiet); font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--rule); padding: .3rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); white-space: nowrap; }
td:first-child { white-space: nowrap; }
pre { background: var(--soft); padding: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; user-select: all; }
svg { display: block; width: 100%; min-width: 40rem; height: auto; }
"""


class Markup(str):
    """Text that is markup already; everything else gets escaped."""

    __slots__ = ()


def to_html(facts: Facts) -> str:
    """The whole page."""
    verdict = facts.verdict
    parts = (
        _head(facts),
        _findings(facts),
        _picture(facts),
        _felt(facts),
        _done(facts),
        _hypotheses(facts),
        _timeline(facts),
        _trust(facts),
        _again(facts),
    )
    body = "\n".join(part for part in parts if part)
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


def _quiet(text: str) -> str:
    return f'<p class="quiet">{escape(text)}</p>'


def _list(items: Iterable[tuple[str, str]]) -> str:
    """Each a name and what is to be said about it."""
    return "<ul>\n" + "\n".join(f"<li><strong>{escape(n)}</strong>{escape(text)}</li>" for n, text in items) + "\n</ul>"


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
    notes = "".join(f"\n<p>Note: {escape(note)}</p>" for note in verdict.notes)
    return (
        f"<h1>{tag(verdict.verdict)} {escape(verdict.title)}</h1>\n"
        f"<p><strong>{escape(sentence(verdict.why))}</strong> Exit code {verdict.exit_code}.</p>\n"
        f"<p>{escape(experiment.why)}</p>\n{_quiet(' · '.join(about))}{notes}"
    )


def _findings(facts: Facts) -> str:
    found = refuted(facts)
    if not found:
        return ""
    owner, page = facts.experiment.owner, facts.experiment.runbook
    where = f" What to do meanwhile: runbooks/{page}.md." if page else ""
    lines = _list((h.name, f" does not hold: {told(h)}") for h in found)
    return f"<h2>Findings</h2>\n{lines}\n<p>For {escape(owner)}.{escape(where)}</p>"


def _picture(facts: Facts) -> str:
    legend = (
        "Shaded: a fault in force. Dotted: an event told by the stack; the timeline below says which. "
        "A wait at the upper edge never ended."
    )
    return f'<h2>The run</h2>\n<div class="wide">{to_svg(facts)}</div>\n{_quiet(legend)}'


def _felt(facts: Facts) -> str:
    if facts.times.load_start is None:
        return f"<h2>What users felt</h2>\n<p>{NO_LOAD}</p>"
    return f"<h2>What users felt</h2>\n{table(FELT_COLUMNS, felt(facts))}\n{_quiet(TIMES_NOTE)}"


def _done(facts: Facts) -> str:
    return f"<h2>What was done to whom</h2>\n{table(done_columns(facts), done(facts))}"


def _hypotheses(facts: Facts) -> str:
    rows = [(tag(h.verdict), *hypothesis_row(h)) for h in facts.verdict.hypotheses]
    text = f"<h2>Hypotheses</h2>\n{table(HYPOTHESIS_COLUMNS, rows)}\n{_quiet(HYPOTHESIS_NOTE)}"
    undecided = [(h.name, f": {sentence(told(h))}") for h in doubts(facts)]
    return text + (f"\n<p>Undecided:</p>\n{_list(undecided)}" if undecided else "")


def _timeline(facts: Facts) -> str:
    moments = ((m.clock, m.text) for m in timeline(facts))
    return f"<h2>Timeline</h2>\n{table(('after load start', 'what'), moments)}"


def _trust(facts: Facts) -> str:
    rows = ((c.name, _yes(c.held), c.why) for c in facts.verdict.preconditions)
    return f"<h2>Could the numbers be trusted?</h2>\n{table(('precondition', 'held', 'why'), rows)}"


def _again(facts: Facts) -> str:
    lines = "".join(f"<pre>{escape(line)}</pre>\n" for line in again(facts).splitlines())
    return f"<h2>Do it again</h2>\n{lines}{_quiet(f'Plan fingerprint {facts.verdict.fingerprint}')}"
