"""Which limiter keeps goodput up and refusals quick? Both kinds with the gateway's real policies, in virtual time.

    python benchmarks/limiter.py [--seeds 3]

The engines are those of the bundled stack, modelled: 16 slots each. Figures are means over the seeds; goodput is the
share of what the engines could have made that came whole and with its first token within 1.5 s. Virtual time, so the
figures are the same on every machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "target_stack" / "simulation"))

from overload import Figures, batch_surge, half_lost, slow_spell, steady

Scenario = Callable[[Mapping[str, Any], int], Figures]
SCENARIOS: Mapping[str, Scenario] = {
    "0.7 x capacity": lambda policies, seed: steady(policies, 0.7, seed=seed),
    "1.0 x": lambda policies, seed: steady(policies, 1.0, seed=seed),
    "1.4 x": lambda policies, seed: steady(policies, 1.4, seed=seed),
    "2.0 x": lambda policies, seed: steady(policies, 2.0, seed=seed),
    "half lost, first 5 s": lambda policies, seed: half_lost(policies, seed=seed)[0],
    "half lost, 25 s after": lambda policies, seed: half_lost(policies, seed=seed)[1],
    "4 x slower for 10 s": lambda policies, seed: slow_spell(policies, seed=seed)[0],
    "20 s after that": lambda policies, seed: slow_spell(policies, seed=seed)[1],
    "12 x batch: users": lambda policies, seed: batch_surge(policies, seed=seed).users,
    "12 x batch: batch": lambda policies, seed: batch_surge(policies, seed=seed).batch,
}


def mean(found: Sequence[Figures]) -> Figures:
    """Field by field."""
    names = [field.name for field in dataclasses.fields(Figures)]
    return Figures(**{name: statistics.mean(getattr(one, name) for one in found) for name in names})


def main() -> None:
    """Print one line a kind and scenario."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, parser.parse_args().seeds + 1)
    for kind in ("aimd", "gradient"):
        for name, scenario in SCENARIOS.items():
            found = [scenario({"limiter": {"kind": kind}}, seed) for seed in seeds]
            print(f"{kind:<9} {name:<22} {mean(found)}", flush=True)


if __name__ == "__main__":
    main()
