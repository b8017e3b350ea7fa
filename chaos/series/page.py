"""series.md: the answer first, then every hypothesis over all runs, the runs, and how to make them again."""

from __future__ import annotations

import shlex

from chaos.report.facts import sentence as as_sentence
from chaos.report.markdown import cell, code, table
from chaos.report.plain import plain
from chaos.series.order import SEED_RULE, Series
from chaos.series.pool import Pooled, pool
from chaos.series.told import (
    HYPOTHESIS_COLUMNS,
    RUN_COLUMNS,
    how_rare,
    hypothesis_row,
    run_again,
    run_alone,
    run_row,
    size,
)

_NOTES = (
    "Held in: runs that decided it; an undecided run counts for neither side. Share of runs: Wilson interval, 95% sure "
    "on each side. One run found: the median run and where the true median lies, or the range where fewer than five "
    "runs measured it. All requests: requests of all runs together; the spread between runs decides their interval, "
    "because requests of one run share its fate. Runs whose preconditions failed say nothing here."
)


def to_markdown(series: Series, folder: str) -> str:
    """The whole page; `folder` is how a person calls the directory of the series."""
    pooled = pool(series)
    parts = (
        _head(series, pooled),
        _first_refuted(series),
        _hypotheses(pooled),
        _runs(series),
        _rare(pooled),
        _again(series, folder),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(series: Series, pooled: Pooled) -> str:
    order, tally = series.order, pooled.tally
    lines = [
        f"# {pooled.verdict.upper()}: {cell(order.title)}, {size(series)}",
        "",
        f"**{cell(as_sentence(pooled.why))}** Exit code {pooled.exit_code}.",
        "",
        f"- experiment: {code(order.experiment)}, profile {cell(order.profile)}",
        f"- series: {code(series.name)}, seed {order.seed} ({cell(SEED_RULE)})",
        f"- runs: {tally.upheld} upheld, {tally.refuted} refuted, {tally.inconclusive} inconclusive",
    ]
    lines += [f"- planted weakness: {cell(name)}" for name in order.weaknesses]
    lines += [f"- changed: {code(option)}" for option in order.set_]
    lines += [f"- cut short and not counted: {code(name)}" for name in series.cut_short]
    return "\n".join(lines + ([f"- to settle: {cell(pooled.to_settle)}"] if pooled.to_settle else []))


def _first_refuted(series: Series) -> str:
    first = series.first_refuted
    if first is None:
        return ""
    broken = [h for h in first.verdict.hypotheses if h.verdict == "refuted"]
    lines = [f"- **{cell(h.name)}** does not hold: {cell(h.why)}" for h in broken]
    where = f"All evidence is in {code(first.folder)}; its page is {code(f'{first.folder}/report.md')}."
    command = _shell(run_alone(series.order, first))
    return f"## The first refuted run\n\nRun {first.number}, seed {first.seed}. {where}\n\n" + "\n".join(
        [*lines, "", "That run again, alone:", "", command]
    )


def _hypotheses(pooled: Pooled) -> str:
    if not pooled.hypotheses:
        return ""
    rows = (hypothesis_row(one) for one in pooled.hypotheses)
    return f"## Hypotheses over the runs\n\n{table(HYPOTHESIS_COLUMNS, rows)}\n\n{_NOTES}"


def _runs(series: Series) -> str:
    return f"## Runs\n\n{table(RUN_COLUMNS, map(run_row, series.entries))}" if series.entries else ""


def _rare(pooled: Pooled) -> str:
    lines = [f"- {line}" for line in how_rare(pooled.tally)]
    return "## How rare a failure can still be\n\n" + "\n".join(lines) if lines else ""


def _again(series: Series, folder: str) -> str:
    resume = [shlex.join(["brownout", "run", "--resume", folder])] if series.due() is not None else []
    return f"## Do it again\n\n{_shell(run_again(series.order), *resume)}"


def _shell(*commands: str) -> str:
    """Commands as they can be copied; a backtick in one would end the block."""
    lines = "\n".join(plain(command).replace("`", "'") for command in commands)
    return f"```sh\n{lines}\n```"
