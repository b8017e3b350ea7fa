"""Control arms on disk: each is a whole run directory inside the directory of the run that it is held against.

RUN_DIR/control/<number>/cut.txt          what was cut
RUN_DIR/control/<number>/<experiment>/<run>/...   the run
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chaos.spec.model import Experiment

FOLDER = "control"
CUT = "cut.txt"
RETRIES = "retries"


def overrides_for(cut: str, experiment: Experiment) -> tuple[str, ...]:
    """What `--set` says for this cut: `retries` makes every client send once; anything else is KEY=VALUE itself."""
    if cut == RETRIES:
        return tuple(f"load.{load.name}.client.retries=0" for load in experiment.loads)
    return (cut,)


def new_arm(run_dir: Path, cut: str) -> Path:
    """The folder of runs of one more arm, with its cut written down. Raises OSError."""
    folder = run_dir / FOLDER / str(len(list((run_dir / FOLDER).glob("*"))) + 1)
    folder.mkdir(parents=True)
    (folder / CUT).write_text(f"{cut}\n", encoding="utf-8")
    return folder


def stored_arms(run_dir: Path) -> Iterator[tuple[str, Path]]:
    """What was cut, and the run directory, of every arm that has a journal."""
    for cut in sorted((run_dir / FOLDER).glob(f"*/{CUT}")):
        for journal in sorted(cut.parent.rglob("journal.jsonl")):
            yield cut.read_text(encoding="utf-8").strip(), journal.parent
