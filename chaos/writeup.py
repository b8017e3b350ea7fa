"""A run directory to a verdict, reports and a runbook block; also one whose harness was killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from chaos.adapters.files import LocalFiles
from chaos.controls import stored_arms
from chaos.journal.evidence import Evidence, load_evidence
from chaos.paths import project_root
from chaos.report.write import write_reports
from chaos.runbooks.block import next_block, rehearsal
from chaos.runbooks.parse import RunbookError, split
from chaos.runbooks.refresh import refresh
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.model import Experiment
from chaos.spec.parse import parse
from chaos.verdict.arms import Arm, diagnosis_of, with_arms
from chaos.verdict.document import to_text
from chaos.verdict.judge import judge
from chaos.verdict.outcome import Verdict
from chaos.wiring import catalog_for


class NotARun(Exception):
    """The folder holds no run that can be judged; the message says what is missing."""


def stored_experiment(run_dir: Path) -> Experiment:
    """The experiment as it was run. Raises NotARun."""
    try:
        text = (run_dir / "experiment.yaml").read_text()
        name = json.loads((run_dir / "plan.json").read_text())["experiment"]
    except (OSError, ValueError, KeyError) as error:
        raise NotARun(f"`{run_dir}` cannot be judged: {error}") from error
    catalog = catalog_for(None)
    read = parse(text, str(run_dir / "experiment.yaml"), catalog, name=name)
    if isinstance(read, Experiment):
        return read
    first: Diagnostic = read[0]
    raise NotARun(f"`{run_dir}/experiment.yaml` is not an experiment any more: {first.headline}")


def judged(run_dir: Path) -> tuple[Experiment, Evidence, Verdict]:
    """Judge stored evidence, its control arms included; writes nothing. Raises NotARun."""
    experiment = stored_experiment(run_dir)
    evidence = load_evidence(run_dir)
    verdict, arms = judge(experiment, evidence), tuple(_arm(cut, path) for cut, path in stored_arms(run_dir))
    return experiment, evidence, with_arms(verdict, diagnosis_of(experiment, evidence), arms) if arms else verdict


def _arm(cut: str, run_dir: Path) -> Arm:
    """One control arm; what is wrong with it is said of it, and does not keep the run from being judged."""
    try:
        found = diagnosis_of(stored_experiment(run_dir), load_evidence(run_dir))
    except NotARun as reason:
        found = str(reason)
    return Arm(cut, run_dir.name, found)


def write_up(run_dir: Path) -> Verdict:
    """Judge and write verdict.json and every report. Raises NotARun, OSError."""
    experiment, evidence, verdict = judged(run_dir)
    LocalFiles().write_atomic(run_dir / "verdict.json", to_text(verdict))
    write_reports(run_dir, experiment, evidence, verdict)
    return verdict


def refresh_runbook(experiment_path: Path, experiment: Experiment, verdict: Verdict, rehearsed_on: str) -> str | None:
    """Put this run into the marked block of its page; None when done or there is no page, else why not."""
    root = project_root(experiment_path)
    page = root / "runbooks" / f"{experiment.runbook}.md" if root and experiment.runbook else None
    if page is None or not page.is_file():
        return None
    try:
        text = page.read_bytes()
        block = next_block(split(text).block.decode(), rehearsal(verdict, rehearsed_on))
        _replace(page, refresh(text, block))
    except (RunbookError, UnicodeDecodeError, OSError) as reason:
        return f"{page.name} was left as it is: {reason}"
    return None


def _replace(page: Path, text: bytes) -> None:
    """Byte for byte: a page may have line ends that a text file would lose. Its mode and a link to it stay."""
    real = page.resolve()
    beside = real.with_name(f".{real.name}.new")
    beside.write_bytes(text)
    shutil.copymode(real, beside)
    beside.replace(real)
