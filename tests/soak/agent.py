"""The agents are killed at 200 random instants: every task finishes, every side effect is there exactly once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from agents import DID, agents, resumed, shake
from drill import Drill
from matrix import Figure, Found, Matrix, Row, Trial

LIVES = 20
KILLS_EACH = 10


def killed(trial: Trial, drill: Drill) -> Found:
    """Ten kills, each while new tasks and those of the lives before are in hand."""
    del drill
    with TemporaryDirectory(prefix="brownout-agent-") as folder, agents(Path(folder)) as place:
        shake(place, KILLS_EACH, random.Random(trial.name))
        wrong = place.wrong()
        effects = sum(kind in DID for kind in place.submitted.values())
        facts = {"kills": KILLS_EACH, "tasks": len(place.submitted), "effects": effects, "resumed": resumed(place)}
    return Found(wrong, facts)


def _sums(rows: Sequence[Row]) -> list[Figure]:
    facts = ("kills", "tasks", "effects", "resumed")
    return [Figure(fact, float(sum(row.get(fact, 0) for row in rows)), unit="") for fact in facts]


AGENT = Matrix(
    "agent",
    "SIGKILL of the agents at any instant: every task finishes, every side effect exactly once",
    lambda: [Trial(f"life-{number:02}", number) for number in range(LIVES)],
    killed,
    _sums,
    stack=False,
)
