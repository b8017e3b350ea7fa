"""All pages of one judged run, each written whole: a reader sees the old page or the new one, never half of one."""

from __future__ import annotations

from pathlib import Path

from chaos.journal.evidence import Evidence
from chaos.report.facts import gather
from chaos.report.html import to_html
from chaos.report.junit import to_junit
from chaos.report.markdown import to_markdown
from chaos.report.timeline_svg import TIMELINE_FILE, to_svg
from chaos.spec.model import Experiment
from chaos.verdict.document import to_text
from chaos.verdict.outcome import Verdict


def write_reports(run_dir: Path, experiment: Experiment, evidence: Evidence, verdict: Verdict) -> tuple[Path, ...]:
    """Write verdict.json, report.md with its picture, report.html and junit.xml into the run directory; returns their
    paths. Raises OSError.
    """
    facts = gather(experiment, evidence, verdict, run_dir)
    pages = {
        "verdict.json": to_text(verdict),
        TIMELINE_FILE: to_svg(facts),
        "report.md": to_markdown(facts),
        "report.html": to_html(facts),
        "junit.xml": to_junit(facts),
    }
    return tuple(_write(run_dir / name, text) for name, text in pages.items())


def _write(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    return draft.replace(path)
