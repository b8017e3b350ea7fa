"""report.html: the same facts as report.md in one file that needs nothing else, fit for a phone, for paper, and for
clicking through on the morning after.

All that is said is in the markup. The script only adds: a timeline that zooms, tables that sort, hypotheses that open
to the requests that speak against them. It draws from one JSON value in the page.
"""

from __future__ import annotations

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
    machine_note,
    sentence,
    timeline,
    told,
)
from chaos.report.inlined import policy, script, style
from chaos.report.interval_plot import interval_plot
from chaos.report.lanes import closed_throughout
from chaos.report.markup import Markup, bullets, cards, quiet, table, tag, tall_table
from chaos.report.page_data import embedded, page_data
from chaos.report.timeline_svg import to_svg
from chaos.verdict.outcome import Judged

_COLUMNS = (*HYPOTHESIS_COLUMNS[:2], "against its bound", *HYPOTHESIS_COLUMNS[2:])
_NOTE = f"{HYPOTHESIS_NOTE} In the picture: the interval, and shaded where the hypothesis wants it."


def to_html(facts: Facts) -> str:
    """The whole page."""
    verdict = facts.verdict
    parts = (
        _head(facts),
        _findings(facts),
        _picture(facts),
        _hypotheses(facts),
        _felt(facts),
        _done(facts),
        _trust(facts),
        _again(facts),
    )
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        f"<title>{escape(f'{verdict.verdict}: {verdict.title}')}</title>\n<style>{style()}</style>\n</head>\n"
        f"<body>\n{body}\n"
        f'<script type="application/json" id="run">{embedded(page_data(facts))}</script>\n'
        f"<script>{script()}</script>\n</body>\n</html>\n"
    )


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
        f"<p>{escape(experiment.why)}</p>\n{quiet(' · '.join(about))}{notes}"
    )


def _findings(facts: Facts) -> str:
    """Each with a link to its row, which the script opens."""
    found = [(number, h) for number, h in enumerate(facts.verdict.hypotheses, 1) if h.verdict == "refuted"]
    if not found:
        return ""
    owner, page = facts.experiment.owner, facts.experiment.runbook
    where = f" What to do meanwhile: runbooks/{page}.md." if page else ""
    lines = bullets(
        (Markup(f'<a href="#hypothesis-{number}">{escape(h.name)}</a>'), f" does not hold: {h.why}")
        for number, h in found
    )
    return f"<h2>Findings</h2>\n{lines}\n<p>For {escape(owner)}.{escape(where)}</p>"


def _picture(facts: Facts) -> str:
    """Two pictures: one that stands still without script, and the place of the one that zooms; then what happened."""
    legend = (
        "Shaded: a fault in force. Dotted, or a triangle: something that happened; the list below says what. "
        "A wait at the upper edge never ended."
    )
    calm = closed_throughout(facts)
    closed = f" Breakers that stayed closed: {', '.join(calm)}." if calm else ""
    still = f'<div class="wide still">{to_svg(facts, styled=False)}</div>'
    moments = ((m.clock, m.text) for m in timeline(facts))
    events = tall_table(("after load start", "what"), moments, "events", "what happened")
    return (
        f'<h2>The run</h2>\n{still}\n<div id="chart" class="live"></div>\n{quiet(legend + closed)}\n'
        f"<h3>What happened</h3>\n{events}"
    )


def _felt(facts: Facts) -> str:
    if facts.times.load_start is None:
        return f"<h2>What users felt</h2>\n<p>{NO_LOAD}</p>"
    return f"<h2>What users felt</h2>\n{table(FELT_COLUMNS, felt(facts))}\n{quiet(TIMES_NOTE)}"


def _done(facts: Facts) -> str:
    return f"<h2>What was done to whom</h2>\n{table(done_columns(facts), done(facts))}"


def _hypotheses(facts: Facts) -> str:
    text = f"<h2>Hypotheses</h2>\n{cards(_COLUMNS, map(_row, facts.verdict.hypotheses), 'hypothesis')}\n{quiet(_NOTE)}"
    undecided = [(h.name, f": {sentence(told(h))}") for h in doubts(facts)]
    return text + (f"\n<p>Undecided:</p>\n{bullets(undecided)}" if undecided else "")


def _row(judged: Judged) -> tuple[object, ...]:
    name, *numbers = hypothesis_row(judged)
    return (tag(judged.verdict), name, Markup(interval_plot(judged)), *numbers)


def _yes(held: bool) -> object:
    return "yes" if held else Markup('<strong class="no">NO</strong>')


def _trust(facts: Facts) -> str:
    rows = ((c.name, _yes(c.held), c.why) for c in facts.verdict.preconditions)
    note = machine_note(facts)
    said = f"\n{quiet(note)}" if note else ""
    return f"<h2>Could the numbers be trusted?</h2>\n{table(('precondition', 'held', 'why'), rows)}{said}"


def _again(facts: Facts) -> str:
    lines = "".join(f"<pre>{escape(line)}</pre>\n" for line in again(facts).splitlines())
    return f"<h2>Do it again</h2>\n{lines}{quiet(f'Plan fingerprint {facts.verdict.fingerprint}')}"
