"""The matrix of kills holds every kind of the catalogue, and one harness of it dies as it should."""

from __future__ import annotations

import random
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system"), str(HERE.parent / "spec")]

import pytest
from by_undo import BY_UNDO, EXCUSED
from kills import RESTARTING, RESTARTS_AT_MOST, TOGETHER, TOGETHER_AT_MOST, WHOLE_STACK, Menu, crew_of, menu_of, shorts

from chaos.faults.catalog import by_kind
from chaos.inventory import Inventory, Target

EDGE = {"admin": "127.0.0.1:1", "name": "x"}


def target(name: str, role: str, wire: str = "http", node: str | None = None) -> Target:
    handles = {"proxy": EDGE, "supervisor": "/s", "device": {"admin": "127.0.0.1:2", "id": "g"}, "admin": "/a"}
    handles = handles if role == "gateway" else {key: value for key, value in handles.items() if key != "admin"}
    return Target(name, role, node, (1, 2), "127.0.0.1:3", "127.0.0.1:4", wire=wire, handles=handles)


INVENTORY = Inventory(
    "bundled",
    "embedded",
    "test",
    ready=True,
    weaknesses=(),
    targets=(
        target("gateway", "gateway"),
        *(target(f"engine-{name}", "engine", node=f"node-{name}") for name in "ab"),
        target("small", "fallback-engine", node="node-c"),
        target("embedder", "embedder"),
        target("store", "vector-store", "postgres"),
        target("cache", "cache", "redis"),
        target("tools", "tool"),
    ),
)


@pytest.fixture(scope="module")
def menu() -> Menu:
    return menu_of(INVENTORY)


def test_every_kind_of_the_catalogue_is_killed_or_has_a_reason_why_not() -> None:
    """For a new kind: tests/system/short/KIND.yaml, its name in BY_UNDO of tests/system/by_undo.py, and what it may
    leave behind as a check in tests/system/harm.py.
    """
    assert {*by_kind} == {*shorts(), *EXCUSED}
    assert not shorts().keys() & EXCUSED.keys()


def test_the_faults_of_a_crew_have_each_a_target_of_its_own_unless_they_get_along(menu: Menu) -> None:
    alone: dict[str, str] = {}
    crew = crew_of(sorted(menu.keys() - WHOLE_STACK), menu, random.Random(1))
    edges = [fault for fault in crew if fault.name in _of(TOGETHER)]
    for fault in crew:
        for each in fault.targets if fault not in edges else ():
            assert alone.setdefault(each.name, fault.name) == fault.name
    crowded = [sum(each in fault.targets for fault in edges) for each in INVENTORY.targets]
    assert 0 < max(crowded) <= TOGETHER_AT_MOST


def test_a_crew_makes_few_targets_start_again(menu: Menu) -> None:
    crew = crew_of(sorted(menu.keys() - WHOLE_STACK), menu, random.Random(1))
    assert sum(fault.name in _of(RESTARTING) for fault in crew) == RESTARTS_AT_MOST


def test_a_kind_that_needs_the_whole_stack_is_a_crew_of_its_own(menu: Menu) -> None:
    (fault,) = crew_of(sorted(menu), menu, random.Random(1))
    assert fault.name in WHOLE_STACK


def _of(families: frozenset[str]) -> set[str]:
    names = {name for family in families for name in BY_UNDO.get(family, ())}
    return {kind for kind, experiment in shorts().items() if experiment.name.rpartition("/")[2] in names}
