"""The harness is SIGKILLed at 100 random instants per kind of fault; after two seconds nothing may be left of any.

    a round:  all kinds of the catalogue ─► crews, whose faults have each a target of its own
    a crew:   one harness holds all its faults at once ─► SIGKILL at a random step of them ─► look for harm

A kill counts for each kind of its crew that the stack took beside the others; what was refused goes with a later crew.
A new kind comes with a short experiment of its name and its line in tests/system/by_undo.py, and is here then.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import redis
from by_undo import ALL, BY_UNDO, DISAGGREGATED
from crew import STEPS, Harness, begin
from drill import ROOT, SHORT, Drill, harm
from harm import ask_unix
from matrix import Figure, Found, Matrix, Row, Trial

from chaos.inventory import Inventory, Target
from chaos.journal.reader import read_journal
from chaos.load.report import quantile
from chaos.plan.plan import Plan, PlannedFault
from chaos.spec.model import Experiment, Profile
from chaos.wiring import planned, read_experiment

ROUNDS = 100
WHOLE_WITHIN_S, PATIENCE_S = 2.0, 30.0
WATCHDOG_LEAVES_WITHIN_S = 5.0
STEP_WITHIN_S = 30.0
A_STEP_S = 0.05
HOLDS_S = (0.2, 0.8)
TRIES = 4
SEEDS = range(6)

Menu = Mapping[str, Sequence[PlannedFault]]

TOGETHER = frozenset({
    *("a marker file", "a listener that is off", "a toxic on bytes", "a toxic on requests", "a toxic on streams"),
    "a page that is served in another's place",
})  # fmt: skip
"""Families of which several may act on one target; of all others one target bears one fault at a time."""
TOGETHER_AT_MOST = 4
RESTARTING = frozenset({
    *("a hold on a dead process", "a hold on all of a node", "a burden on a process", "a condition of a GPU"),
})  # fmt: skip
"""Families after which a target has to start again."""
RESTARTS_AT_MOST = 3  # in a crew: two cores can start no more of them within the time that one fault may take
WHOLE_STACK = frozenset({"release_canary"})
"""Kinds for which other parts than the target must be well: alone in their crew."""
HOSTS = frozenset({"engine", "fallback-engine", "embedder", "tool", "cache"})
"""Roles that may stand in for the target of a short experiment, where the fault has no problem with them."""
ENTRIES = {f"answer:{number}": "text" for number in range(50)}


@functools.cache
def shorts() -> dict[str, Experiment]:
    """The short experiment of each kind in whose middle the harness is killed."""
    found = (_experiment(name) for family in _families() for name in family[1])
    return {experiment.faults[0].kind: experiment for experiment in found}


def _families() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What an undo is, and the short experiments whose undo it is."""
    return (*BY_UNDO.items(), *DISAGGREGATED.items())


def _experiment(name: str) -> Experiment:
    found = read_experiment(SHORT / f"{name}.yaml", ROOT)
    assert isinstance(found, Experiment), found
    return found


def killed(trial: Trial, drill: Drill) -> Found:
    """Kill one crew after the other, until every kind was in one."""
    dice, kills, wrong = random.Random(trial.name), list[dict[str, Any]](), None
    menu = menu_of(_inventory(drill))
    waiting = Counter(dict.fromkeys(menu, TRIES))
    while +waiting and wrong is None:
        inventory = _inventory(drill)
        faults = [_as_it_is_now(fault, inventory) for fault in crew_of(sorted(+waiting), menu, dice)]
        _fill_cache(inventory)
        harness, kill = _killed(faults, f"{trial.name.replace('/', '-')}-{len(kills)}", drill, dice)
        wrong = _wrong(kill, harness)
        kills.append(kill)
        waiting.subtract([fault.name for fault in faults])
        for kind in kill["kinds"]:
            del waiting[kind]
    return Found(wrong, {"kills": kills})


def _killed(
    faults: Sequence[PlannedFault], run: str, drill: Drill, dice: random.Random
) -> tuple[Harness, dict[str, Any]]:
    """One kill; how long until nothing is broken, and what still is when patience ends."""
    steps = dice.randrange(len(STEPS) * len(faults) + 1)
    harness = begin(drill, faults, run, dice.uniform(*HOLDS_S))
    try:
        harness.hear(steps, STEP_WITHIN_S)
        time.sleep(dice.uniform(0, A_STEP_S))
    finally:
        harness.kill()
    took_s, broken, last = _until_whole(drill)
    refused = {kind: why for _, kind, why in harness.said("refused")}
    kinds = [fault.name for fault in faults if fault.name not in refused]
    word = " ".join(harness.words[-1][:2]) if harness.words else "before its first word"
    instant = f"step {steps} of {len(STEPS) * len(faults)}: {word}"
    return harness, {
        "kinds": kinds,
        "instant": instant,
        "whole_s": round(took_s, 3),
        "broken": broken,
        "refused": refused,
        "last": last,
        "targets": {fault.name: [target.name for target in fault.targets] for fault in faults},
    }


def _until_whole(drill: Drill) -> tuple[float, list[str], list[str]]:
    """Seconds until nothing is broken any more, what still is when patience ends, and what was for the last time."""
    began, last = time.monotonic(), list[str]()
    while True:
        broken = harm(drill)
        took_s = time.monotonic() - began
        if not broken or took_s > PATIENCE_S:
            return took_s, broken, last
        last = broken


def _wrong(kill: dict[str, Any], harness: Harness) -> str | None:
    """What is left, of the faults, of the evidence, of the watchdog."""
    if failed := harness.said("failed"):
        return f"the harness broke by itself: {failed}"
    if kill["broken"]:
        return f"still broken after {PATIENCE_S:.0f}s: {kill['broken']}, {kill['instant']}, {kill['targets']}"
    journal = harness.run_dir / "journal.jsonl"
    problems = read_journal(journal.read_bytes()).problems if harness.steps() else ()
    if strange := [str(problem) for problem in problems if problem.kind not in {"interrupted", "torn"}]:
        return f"journal: {strange}"
    give_up = time.monotonic() + WATCHDOG_LEAVES_WITHIN_S
    while harness.guarded():
        if time.monotonic() > give_up:
            return "its watchdog stays"
        time.sleep(0.05)
    return None


def menu_of(inventory: Inventory) -> Menu:
    """The kinds that can be had here, each on all targets that it may have."""
    here = {*ALL, *chain.from_iterable(DISAGGREGATED.values())}
    possible = [kind for kind in kinds_of(inventory.profile) if _short_name(shorts()[kind]) in here]
    menu = {kind: candidates(kind, inventory) for kind in possible}
    return {kind: faults for kind, faults in menu.items() if faults}


def crew_of(kinds: Sequence[str], menu: Menu, dice: random.Random) -> list[PlannedFault]:
    """Faults of as many kinds as find targets of their own, those with the least choice first, in any order."""
    if alone := [kind for kind in kinds if kind in WHOLE_STACK]:
        return [dice.choice(menu[alone[0]])]
    taken: Counter[tuple[bool, str]] = Counter()
    found, restarts = list[PlannedFault](), RESTARTS_AT_MOST
    for kind in sorted(kinds, key=lambda each: (len(menu[each]), dice.random())):
        together, restarting = _family(kind) in TOGETHER, _family(kind) in RESTARTING
        most = TOGETHER_AT_MOST if together else 1
        free = [fault for fault in menu[kind] if all(taken[together, t.name] < most for t in fault.targets)]
        if free and (restarts or not restarting):
            restarts -= restarting
            found.append(dice.choice(free))
            taken.update((together, target.name) for target in found[-1].targets)
    dice.shuffle(found)
    return found


def candidates(kind: str, inventory: Inventory) -> list[PlannedFault]:
    """A fault of this kind on each target, or set of targets, that it may have; its name is the kind. None where this
    machine or stack has not what it needs: then its kills are missing in the figures.
    """
    experiment = shorts()[kind]
    plans = [planned(experiment, inventory, seed) for seed in SEEDS]
    own = {_names(plan.faults[0]): plan.faults[0] for plan in plans if isinstance(plan, Plan)}
    if not own:
        return []
    fault, selector = next(iter(own.values())), experiment.faults[0].target
    movable = selector is not None and selector.node is None
    others = [dataclasses.replace(fault, targets=(t,)) for t in inventory.targets if movable and _will_do(fault, t)]
    everywhere = {**{_names(other): other for other in others}, **own}
    return [dataclasses.replace(each, name=kind) for each in everywhere.values()]


def _as_it_is_now(fault: PlannedFault, inventory: Inventory) -> PlannedFault:
    """With targets whose processes are those of this moment."""
    now = {target.name: target for target in inventory.targets}
    return dataclasses.replace(fault, targets=tuple(now[target.name] for target in fault.targets))


def _names(fault: PlannedFault) -> tuple[str, ...]:
    return tuple(target.name for target in fault.targets)


def _will_do(fault: PlannedFault, target: Target) -> bool:
    return target.role in HOSTS and not fault.fault.problems((target,))


def _family(kind: str) -> str:
    """What its undo is."""
    name = _short_name(shorts()[kind])
    return next(family for family, names in _families() if name in names)


def kinds_of(profile: str) -> tuple[str, ...]:
    """Kinds whose short experiment is made for this stack."""
    return tuple(kind for kind, experiment in shorts().items() if experiment.profile == profile)


def _short_name(experiment: Experiment) -> str:
    return experiment.name.rpartition("/")[2]


def _inventory(drill: Drill) -> Inventory:
    return Inventory.from_json(ask_unix(str(drill.state / "stacks" / "bundled" / "control.sock"), "/status"))


def _fill_cache(inventory: Inventory) -> None:
    """A flush of an empty cache is refused."""
    for target in inventory.of_role("cache"):
        host, _, port = target.address.rpartition(":")
        with redis.Redis(host=host, port=int(port), socket_timeout=2) as client:
            client.mset(ENTRIES)


def figures(profile: str, rows: Sequence[Row]) -> list[Figure]:
    """How many kills each kind has, how soon all was whole, and which kinds were slowest in the median."""
    kills = [kill for row in rows for kill in row.get("kills", ())]
    by_kind = {kind: [kill["whole_s"] for kill in kills if kind in kill["kinds"]] for kind in kinds_of(profile)}
    slowest = sorted(by_kind, key=lambda kind: -(quantile(by_kind[kind], 0.5) or 0.0))[:3]
    soon = [kill["whole_s"] for kill in kills]
    return [
        Figure("kinds", float(len(by_kind)), unit=""),
        Figure("least kills of one", float(min(map(len, by_kind.values()))), unit=""),
        Figure("kinds below", float(sum(len(each) < ROUNDS for each in by_kind.values())), unit="", below=0.5),
        Figure("whole p50", quantile(soon, 0.5)),
        Figure("max", max(soon, default=None), below=WHOLE_WITHIN_S),
        *(Figure(f"slowest {kind}", quantile(by_kind[kind], 0.5)) for kind in slowest),
    ]


def _matrix(name: str, profile: Profile) -> Matrix:
    """The kills of one stack."""
    return Matrix(
        name,
        f"SIGKILL at {ROUNDS} instants per kind of fault on {profile}: nothing is left {WHOLE_WITHIN_S:.0f}s later",
        lambda: [Trial(f"round/{number:03}", number) for number in range(ROUNDS)],
        killed,
        functools.partial(figures, profile),
        up=("--profile", profile),
    )


KILLS = _matrix("kills", "embedded")
KILLS_DISAGGREGATED = _matrix("kills_pd", "embedded-pd")
