"""Known mistakes that can be planted in the stack, to prove that an experiment catches them.

Each one is a pure change of one component's configuration, so the code that runs is the same as in the hardened stack.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, Any]


class UnknownWeakness(ValueError):
    """There is no weakness of this name; the message offers the nearest."""


@dataclass(frozen=True)
class Weakness:
    """A mistake with a name: `apply` takes the configuration of `component` and gives it back with the mistake."""

    name: str
    summary: str
    component: str
    apply: Callable[[Config], dict[str, Any]]


def _with_policies(changes: Config) -> Callable[[Config], dict[str, Any]]:
    def apply(config: Config) -> dict[str, Any]:
        return {**config, "policies": {**config.get("policies", {}), **changes}}

    return apply


WEAKNESSES = (
    Weakness(
        "breaker_missing",
        "The gateway has no circuit breakers: every request waits for a dependency that is known to be down.",
        "gateway",
        _with_policies({"breaker": {"kind": "none"}}),
    ),
    Weakness(
        "retries_without_budget",
        "The gateway tries four times without pause or budget, so that a slow dependency gets four times the load.",
        "gateway",
        _with_policies({"retry_budget": {"kind": "unlimited"}, "attempts": 4, "backoff": {"kind": "none"}}),
    ),
)


def find_weaknesses(names: Sequence[str]) -> tuple[Weakness, ...]:
    """The weaknesses of these names, each once, in the given order. Raises UnknownWeakness."""
    known = {weakness.name: weakness for weakness in WEAKNESSES}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise UnknownWeakness(f"there is no weakness {name!r}; did you mean {near!r}?")
    return tuple(known[name] for name in dict.fromkeys(names))


def plant(weaknesses: Sequence[Weakness], component: str, config: Config) -> dict[str, Any]:
    """The configuration of a component with those weaknesses in it that concern it."""
    planted = dict(config)
    for weakness in weaknesses:
        if weakness.component == component:
            planted = weakness.apply(planted)
    return planted
