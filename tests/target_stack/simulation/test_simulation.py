"""What the stack as a whole promises, with its real policies, in virtual time."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from simulator import Simulation


def test_a_quiet_stack_serves_everybody_once() -> None:
    simulation = Simulation()
    simulation.load(0.5 * simulation.capacity_per_s(), until_s=20)
    simulation.run(until_s=20)
    assert {"good"} == {one.outcome for one in simulation.requests}
    assert (1.0, 1.0) == (simulation.amplification().calls, simulation.amplification().tokens)


def test_the_same_seed_gives_the_same_run() -> None:
    def played() -> list[object]:
        simulation = Simulation(seed=5)
        simulation.load(30, until_s=5)
        simulation.at(2, simulation.engines[0].kill)
        simulation.run(until_s=6)
        return [*simulation.requests, *simulation.events()]

    assert played() == played()
