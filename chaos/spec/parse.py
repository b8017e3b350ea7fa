"""The front door: a file's text to an experiment, or to everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from chaos.spec.catalog import Catalog
from chaos.spec.decode import decode
from chaos.spec.diagnostic import Diagnostic, Source, Span, ordered
from chaos.spec.draft import Draft, Places
from chaos.spec.model import Experiment
from chaos.spec.overrides import apply_overrides, label_of, written_out
from chaos.spec.rules import broken_rules
from chaos.spec.source import MappingNode, Node, decoded, read


def parse(
    text: str | bytes, label: str, catalog: Catalog, *, name: str | None = None, overrides: Sequence[str] = ()
) -> Experiment | tuple[Diagnostic, ...]:
    """The experiment, or all problems sorted by position (never an empty tuple). Never raises on bad input.

    `label` is how messages call the file. `name` is the experiment's name; by default the label's path below
    `experiments/`, without its suffix. `overrides` are options such as `faults.0.for=10s`; the experiment's `text` then
    is the file with them in place, so that it means the same when it is read again. Raises TypeError when a class of
    the catalog has a setting of a type that nobody can write (a mistake in the catalog, not in the file).
    """
    source = Source(label, text.removeprefix("\ufeff")) if isinstance(text, str) else decoded(text, label)
    if isinstance(source, Diagnostic):
        return (source,)
    root, unreadable = read(source)
    if root is None:
        return unreadable
    root, misplaced = apply_overrides(root, overrides)
    draft, refused = decode(root, catalog)
    problems = ordered((*unreadable, *misplaced, *refused, *broken_rules(draft)))
    if problems:
        return problems
    effective = written_out(root, label, overrides) if overrides else source.text
    return _experiment(draft, root, name or name_of(label), label, effective)


def name_of(label: str) -> str:
    """`…/experiments/engine/stall.yaml` is `engine/stall`; a file elsewhere is called by its stem."""
    path = PurePath(label).with_suffix("")
    parts = path.parts
    if "experiments" not in parts[:-1]:
        return path.name
    below = len(parts) - parts[::-1].index("experiments")
    return "/".join(parts[below:])


def locate(experiment: Experiment, path: str) -> Span:
    """Where a data path (or the nearest part above it) stands in an experiment's text, for problems found by later
    stages.
    """
    source = Source(label_of(experiment.text, experiment.path), experiment.text)
    root, _ = read(source)
    return Places.of(root).at(path) if root else source.point(0)


def _experiment(draft: Draft, root: Node, name: str, label: str, text: str) -> Experiment:
    top = draft.top
    return Experiment(
        name=name,
        path=label,
        text=text,
        version=top["version"],
        title=top["title"],
        why=top["why"],
        owner=top["owner"],
        runbook=top["runbook"],
        tags=top["tags"],
        blast_radius=top["blast_radius"],
        loads=tuple(load.value for load in draft.loads),
        windows=top["windows"],
        faults=tuple(fault.value for fault in draft.faults),
        guards=tuple(guard.value for guard in draft.guards),
        hypotheses=tuple(hypothesis.value for hypothesis in draft.hypotheses),
        lines=_lines(draft.places, root),
        profile=top["profile"],
    )


def _lines(places: Places, root: Node) -> dict[str, int]:
    """Path to line; a load that is written without a list can also be found as `load.0`."""
    lines = places.lines()
    if isinstance(root, MappingNode) and isinstance(root.get("load"), MappingNode):
        lines |= {f"load.0{path[4:]}": line for path, line in lines.items() if path.split(".")[0] == "load"}
    return lines
