"""Failures of engines in virtual time, each boiled down to the figure that the gateway promises something about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from modelled_engine import ModelledEngine
from simulator import Amplification, Client, Simulation

from target_stack.weaknesses import find_weaknesses, plant

WAYS: Mapping[str, Callable[[ModelledEngine], None]] = {
    "dead": ModelledEngine.kill,
    "frozen": ModelledEngine.freeze,
    "busy": ModelledEngine.refuse,
    "failing": lambda engine: engine.refuse(500),
}
DOWN_S = 60.0
BEFORE_S = 5.0
AMPLIFIED_AT_MOST = 1.10
ROUTED_WITHIN_S = 0.5
STALL_PERIOD_S = 1.0


def outage(way: str, seed: int, *weaknesses: str) -> Amplification:
    """All main engines are down for a minute, and clients send again as OpenAI's SDK does: what reaches the engines for
    each thing that users ask for in that minute. Small and large requests, so that calls and tokens differ.
    """
    policies = plant(find_weaknesses(weaknesses), "gateway", {"policies": {}})["policies"]
    simulation = Simulation(policies, seed=seed)
    client = Client(timeout_s=4.0, resends=2, pause_s=0.5)
    until_s = BEFORE_S + DOWN_S
    simulation.load(8, until_s, prompt_tokens=20, max_tokens=8, client=client)
    simulation.load(2, until_s, name="long", prompt_tokens=400, max_tokens=24, client=client)
    for engine in simulation.engines:
        simulation.at(BEFORE_S, lambda engine=engine: WAYS[way](engine))
    simulation.run(until_s)
    return simulation.amplification(BEFORE_S, until_s)


def routed_after_loss(seed: int) -> float:
    """One of two engines dies: how long after that the last request is still sent there."""
    simulation = Simulation(seed=seed)
    simulation.load(25, until_s=8)
    simulation.at(3, simulation.engines[0].kill)
    simulation.run(until_s=8)
    return max((call.at - 1003.0 for call in simulation.calls(simulation.engines[0], from_s=3)), default=0.0)


def out_after_freeze(seed: int, *weaknesses: str) -> float:
    """One of two engines freezes: how long until it is out of rotation; infinite when it never is."""
    policies = plant(find_weaknesses(weaknesses), "gateway", {"policies": {}})["policies"]
    simulation = Simulation(policies, seed=seed)
    simulation.load(25, until_s=12)
    simulation.at(3, simulation.engines[0].freeze)
    simulation.run(until_s=12)
    return min((event["at"] - 3.0 for event in simulation.events("replica_ejected")), default=float("inf"))
