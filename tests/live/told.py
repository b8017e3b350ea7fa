"""A plan and the records and samples of its run, in the order in which a listener hears them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.inventory import Target
from chaos.plan.plan import Plan, PlannedFault
from tests.verdict.story import BASELINE, EXPERIMENT, FAULT, LOAD_END, LOAD_START, Story, experiment

GUARDS = """\
guards:
  - {measure: success_ratio, load: chat, below: 40%, over: 5s}
  - {measure: ttft, quantile: p95, above: 8s, over: 5s}
hypotheses:"""

GUARDED = EXPERIMENT.replace("hypotheses:", GUARDS)


def plan(text: str = GUARDED) -> Plan:
    """The outage of the stories, with its targets drawn."""
    checked = experiment(text)
    store = Target("vector-store", "vector-store", None, (1,), "127.0.0.1:1")
    fault = PlannedFault("outage", checked.faults[0].fault, (store,), BASELINE, BASELINE + FAULT, 20.0)
    return Plan(checked, "bundled", "embedded", 7, (fault,), (), (), LOAD_END - LOAD_START, "sha256:5eed")


def told(story: Story, until_s: float = 1e9) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Everything that was told up to a moment."""
    records = [(t, kind, {"t": t, **fields}) for t, kind, fields in story.records()]
    samples = [(sample.end_s, "sample", {"sample": sample}) for sample in story.samples()]
    for t, kind, fields in sorted((*records, *samples), key=lambda each: each[0]):
        if t <= until_s:
            yield kind, fields
