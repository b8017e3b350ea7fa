"""The verdict for a terminal: one line for a list of runs, one block at the end of a run."""

from __future__ import annotations

from collections import Counter

from chaos.report.facts import found, wanted
from chaos.report.plain import plain
from chaos.verdict.arms import ARM
from chaos.verdict.outcome import Verdict


def one_line(verdict: Verdict) -> str:
    """`refuted       retrieval/vector_store_outage  7 upheld, 2 refuted  (exit 1)`."""
    counts = Counter(judged.verdict for judged in verdict.hypotheses)
    told = ", ".join(f"{counts[t]} {t}" for t in ("upheld", "refuted", "inconclusive") if counts[t]) or "no hypothesis"
    return f"{verdict.verdict:<12}  {plain(verdict.experiment)}  {told}  (exit {verdict.exit_code})"


def block(verdict: Verdict, report: str | None = None) -> str:
    """The verdict and why, every hypothesis with its number, where the report is. No trailing newline.

    Where a precondition was not met the numbers stand as they were found, but nothing settles them one by one.
    """
    lines = [f"{verdict.verdict.upper()}  {plain(verdict.title)}", f"  {plain(verdict.why)}"]
    unmet = [condition for condition in verdict.preconditions if not condition.held]
    width = max((len(judged.name) for judged in verdict.hypotheses), default=0)
    for judged in verdict.hypotheses:
        told = f"{found(judged)}, wanted {wanted(judged)}"
        lines.append(f"  {judged.verdict:<12}  {plain(judged.name):<{width}}  {told}")
        if judged.to_settle and not unmet:
            lines.append(f"  {'':<12}  {'':<{width}}  to settle: {plain(judged.to_settle)}")
    lines += [f"  {plain(note)}" for note in verdict.notes if note.startswith(ARM)]
    if report:
        lines.append(f"  report: {plain(report)}")
    return "\n".join(lines)
