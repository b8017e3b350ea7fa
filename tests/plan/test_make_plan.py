"""Planning: seeded, bounded by the blast radius, and refused with reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.faults.fault import Sighting, Undo
from chaos.inventory import Inventory, Target
from chaos.plan.make import make_plan, to_json
from chaos.plan.plan import Plan
from chaos.plan.render import render
from chaos.plan.targeting import PlanProblem
from chaos.ports import Host
from chaos.settings import setting
from chaos.spec.model import BlastRadius, Experiment, FaultEntry, Load, Selector, Windows
from chaos.units import Duration, Rate


@dataclasses.dataclass(frozen=True)
class Poke:
    """A fault that needs the grip `stick`."""

    kind: ClassVar[str] = "poke"
    summary: ClassVar[str] = "pokes"
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = "an eye"
    depth: Duration = setting("how deep", default=Duration(1))

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        return tuple(f"{t.name} has no stick" for t in targets if "stick" not in t.handles)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        return {}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None: ...

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        return Sighting(seen=True, what="")

    async def revert(self, undo: Undo, host: Host) -> None: ...

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        return Sighting(seen=True, what="")


def target(
    name: str, role: str = "engine", node: str | None = None, handles: Mapping[str, Any] | None = None
) -> Target:
    return Target(name, role, node, (1,), "127.0.0.1:1", handles={"stick": 1} if handles is None else handles)


INVENTORY = Inventory(
    "bundled", "embedded", "test", True, (),
    (
        target("gateway", "gateway"),
        target("engine-a", node="gpu-1"),
        target("helper-a", "embedder", node="gpu-1"),
        target("engine-b", node="gpu-2"),
        target("engine-c", node="gpu-3"),
    ),
)  # fmt: skip


def entry(selector: Selector | None, *, name: str = "poke", at: float = 0, for_: float = 8) -> FaultEntry:
    return FaultEntry(name, "poke", Duration(for_), selector, Duration(at), Poke())


def experiment(*faults: FaultEntry, roles: tuple[str, ...] = ("engine",), targets: int = 1) -> Experiment:
    return Experiment(
        name="x/y", path="x/y.yaml", text="", version=1, title="T", why="W", owner="o", runbook="", tags=(),
        blast_radius=BlastRadius(roles, Duration(30), targets),
        loads=(Load("chat", "chat", Rate(10)),),
        windows=Windows(Duration(10), Duration(6), Duration(4)),
        faults=faults, guards=(), hypotheses=(), lines={},
    )  # fmt: skip


def planned(*faults: FaultEntry, seed: int = 7, **radius: Any) -> Plan:
    plan = make_plan(experiment(*faults, **radius), INVENTORY, seed)
    assert isinstance(plan, Plan), plan
    return plan


def refused(*faults: FaultEntry, **radius: Any) -> tuple[PlanProblem, ...]:
    problems = make_plan(experiment(*faults, **radius), INVENTORY, 7)
    assert isinstance(problems, tuple)
    return problems


def test_the_same_seed_gives_the_same_bytes() -> None:
    one, two = (planned(entry(Selector(role="engine"))) for _ in range(2))
    assert (render(one), to_json(one)) == (render(two), to_json(two))


def test_different_seeds_reach_every_target() -> None:
    drawn = {planned(entry(Selector(role="engine")), seed=s).faults[0].targets[0].name for s in range(40)}
    assert {"engine-a", "engine-b", "engine-c"} == drawn


def test_a_second_fault_never_moves_the_targets_of_the_first() -> None:
    first = entry(Selector(role="engine"))
    later = entry(Selector(role="engine"), name="later", at=20)
    for seed in range(20):
        assert planned(first, seed=seed).faults[0].targets == planned(first, later, seed=seed).faults[0].targets


def test_a_node_is_harmed_whole() -> None:
    plan = planned(entry(Selector(node="gpu-1")), roles=("engine", "embedder"), targets=2)
    assert ["engine-a", "helper-a"] == [t.name for t in plan.faults[0].targets]


def test_any_node_is_drawn_among_those_that_hold_the_role() -> None:
    plans = [
        planned(entry(Selector(role="embedder", node="any")), roles=("engine", "embedder"), targets=2, seed=s)
        for s in range(8)
    ]
    assert {"gpu-1"} == {t.node for plan in plans for t in plan.faults[0].targets}


def test_an_empty_selection_is_refused_and_says_what_is_there() -> None:
    (problem,) = refused(entry(Selector(role="cache")), roles=("cache",))
    assert ("no-target", "nothing with role `cache` is running", "faults.0.target") == (
        problem.code, problem.headline, problem.path,
    )  # fmt: skip
    assert "engine-a (engine on gpu-1)" in (problem.help or "")


@pytest.mark.parametrize(
    ("selector", "roles", "targets", "code"),
    [
        (Selector(role="engine", count=2), ("engine",), 1, "wider-than-blast-radius"),
        (Selector(node="gpu-1"), ("engine",), 2, "role-outside-blast-radius"),
        (Selector(role="engine", count=4), ("engine",), 4, "too-few-targets"),
    ],
)
def test_a_selection_outside_the_blast_radius_is_refused(
    selector: Selector, roles: tuple[str, ...], targets: int, code: str
) -> None:
    assert [code] == [p.code for p in refused(entry(selector), roles=roles, targets=targets)]


def test_faults_at_the_same_time_share_one_blast_radius() -> None:
    together = (entry(Selector(name="engine-a")), entry(Selector(name="engine-b"), name="second", at=4))
    assert ["wider-than-blast-radius"] == [p.code for p in refused(*together)]
    apart = (together[0], entry(Selector(name="engine-b"), name="second", at=8))
    assert 2 == len(planned(*apart).faults)


def test_a_target_without_the_needed_grip_is_refused_by_the_fault_itself() -> None:
    bare = dataclasses.replace(INVENTORY, targets=(target("engine-a", handles={}),))
    problems = make_plan(experiment(entry(Selector(role="engine"))), bare, 7)
    assert isinstance(problems, tuple)
    assert [("cannot-be-harmed-so", "engine-a has no stick")] == [(p.code, p.headline) for p in problems]


@given(
    st.lists(st.tuples(st.floats(0, 60), st.floats(0.1, 60)), min_size=1, max_size=5),
    st.integers(0, 2**32),
)
def test_steps_are_in_time_order_and_every_inject_is_armed_before_and_reverted_after(
    spans: list[tuple[float, float]], seed: int
) -> None:
    faults = [entry(Selector(name="engine-a"), name=f"f{i}", at=at, for_=for_) for i, (at, for_) in enumerate(spans)]
    plan = planned(*faults, seed=seed)
    assert sorted(s.at for s in plan.steps) == [s.at for s in plan.steps]
    for fault in plan.faults:
        actions = [
            s.action for s in plan.steps if s.subject == fault.name and s.action not in {"open_window", "close_window"}
        ]
        assert ["arm", "inject", "look", "revert"] == actions
        assert fault.lease_s > fault.revert_at - fault.inject_at


def test_the_fingerprint_changes_with_every_decision() -> None:
    base = planned(entry(Selector(name="engine-a")))
    others = [
        planned(entry(Selector(name="engine-b"))),
        planned(entry(Selector(name="engine-a"), for_=9)),
        planned(entry(Selector(name="engine-a")), seed=8),
        planned(entry(Selector(name="engine-a")), targets=2),
    ]
    assert 5 == len({base.fingerprint, *(plan.fingerprint for plan in others)})
