"""An experiment as the model sees it: which of its faults is a trigger, and of which kind.

Only what takes capacity from engines, adds load, or empties the cache can be modelled; what the model assumes of each
kind is said in words, and everything else is refused with the reason. Numbers of the stack come from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from chaos.load.personas import ClientBehaviour, behaviour_of
from chaos.spec.model import Experiment, FaultEntry, Load
from chaos.tipping.system import Budget, Cache, System, Trigger
from chaos.units import Duration, Rate, Ratio


@dataclass(frozen=True)
class Stack:
    """What an experiment file does not say of a stack. The defaults are those of the profile `embedded`: two engines
    with 16 slots each, and the bound of the gateway's line. Without a capacity it is what they serve of such answers:
    one holds its slot for 15 ms and 16 ms a token, and ends by itself after some 30 tokens (48 tokens: 65/s, of which
    experiments/load/capacity_loss asks 48/s).
    """

    capacity_per_s: float | None = None
    engines: int = 2
    slots: int = 32
    queue: float = 64.0
    budget: float | None = None
    cancels: bool = True
    cached: float | None = None

    def capacity_for(self, max_tokens: int) -> float:
        """Requests a second, three digits of it."""
        if self.capacity_per_s is not None:
            return self.capacity_per_s
        return float(f"{self.slots / (_ANSWER_S + _TOKEN_S * min(max_tokens, _USUAL_TOKENS)):.3g}")


_ANSWER_S, _TOKEN_S, _USUAL_TOKENS = 0.015, 0.016, 30


@dataclass(frozen=True)
class Scene:
    """What is played: the system, the trigger as written, and in words what was assumed of both."""

    system: System
    trigger: Trigger
    clients: str
    stack: str
    fault: str


class CannotModel(Exception):
    """No fault of the file is a trigger that the model knows; the message says why and what it knows."""


_KNOWN = (
    "It knows faults that stop engines or the gateway (process_kill, process_stall, node_loss, net_down, net_timeout, "
    "gpu_hang, gpu_lost), slow engines down (gpu_throttle, net_latency), add load (load_surge, a load's own `surge`) "
    "or empty the cache (cache_flush, with --cached)"
)
_STOPS = frozenset({"process_kill", "process_stall", "node_loss", "net_down", "net_timeout", "gpu_hang", "gpu_lost"})


def scene_of(experiment: Experiment, stack: Stack) -> Scene:
    """The first fault, or else the first surge, as a trigger. Raises CannotModel."""
    rate = sum(float(load.rate) for load in experiment.loads)
    if not rate:
        raise CannotModel("no load sends anything")
    leading = max(experiment.loads, key=lambda load: float(load.rate))
    behaviour = behaviour_of(leading.client)
    capacity = stack.capacity_for(leading.max_tokens)
    trigger, fault = _trigger(experiment, stack, rate, capacity)
    system = System(
        rate_per_s=rate,
        capacity_per_s=capacity,
        timeout_s=behaviour.timeout_s,
        attempts=behaviour.retries + 1,
        backoff_s=behaviour.backoff_s,
        queue=stack.queue,
        slots=stack.slots,
        cancels=stack.cancels,
        budget=None if stack.budget is None else Budget(stack.budget),
        cache=None if stack.cached is None else Cache(stack.cached, keys=round(20 * rate)),
        even=True,
    )
    return Scene(system, trigger, _clients(experiment, leading, rate, behaviour), _stack(stack, capacity), fault)


def _trigger(experiment: Experiment, stack: Stack, rate: float, capacity: float) -> tuple[Trigger, str]:
    entry = next((fault for fault in experiment.faults if fault.kind != "noop"), None)
    surging = next((load for load in experiment.loads if load.surge is not None), None)
    if entry is None:
        if surging is None or surging.surge is None:
            raise CannotModel(f"nothing in the file is a trigger that the model knows. {_KNOWN}")
        return _surge(surging, rate)
    model = _MODELS.get("stop" if entry.kind in _STOPS else entry.kind)
    if model is None:
        raise CannotModel(f"the model does not know what `{entry.kind}` does to capacity. {_KNOWN}")
    effect = model(entry, _Setting(stack, rate, capacity))
    return Trigger(effect.kind, float(entry.for_), effect.factor), f"{entry.name} ({entry.kind}): {effect.words}"


def _surge(load: Load, rate: float) -> tuple[Trigger, str]:
    surge = load.surge
    assert surge is not None  # noqa: S101  the caller chose a load with one
    factor = (rate + float(load.rate) * (surge.times - 1)) / rate
    words = f"{load.name}: its surge makes the whole load {factor:.3g} times what it is"
    return Trigger("load", float(surge.for_), factor), words


@dataclass(frozen=True)
class _Setting:
    stack: Stack
    rate: float
    capacity: float


@dataclass(frozen=True)
class _Effect:
    """What the model does for a fault, and in words what that takes for granted."""

    kind: Literal["capacity", "load", "flush"]
    factor: float
    words: str


def _stop(entry: FaultEntry, setting: _Setting) -> _Effect:
    if entry.target is not None and entry.target.role == "gateway":
        return _Effect("capacity", 0.0, "the front door does nothing until the revert")
    hit, words = _engines_hit(entry, setting.stack)
    left = 1 - hit / setting.stack.engines
    return _Effect("capacity", left, f"{words} do nothing until the revert, so {_share(left)} of capacity is left")


def _slower(entry: FaultEntry, setting: _Setting) -> _Effect:
    hit, words = _engines_hit(entry, setting.stack)
    clock = float(getattr(entry.fault, "clock", Ratio(0)))
    left = 1 - hit / setting.stack.engines * (1 - clock)
    return _Effect(
        "capacity", left, f"{words} work at {_share(clock)} of their speed, so {_share(left)} of capacity is left"
    )


def _later(entry: FaultEntry, setting: _Setting) -> _Effect:
    hit, words = _engines_hit(entry, setting.stack)
    added, usual = float(getattr(entry.fault, "latency", Duration(0))), setting.stack.slots / setting.capacity
    left = 1 - hit / setting.stack.engines * (1 - usual / (usual + added))
    held = f"each place on {words} is held {Duration(added)} longer than its usual {Duration(float(f'{usual:.3g}'))}"
    return _Effect("capacity", left, f"{held}, so {_share(left)} of capacity is left")


def _more(entry: FaultEntry, setting: _Setting) -> _Effect:
    added = float(getattr(entry.fault, "rate", Rate(0)))
    factor = (setting.rate + added) / setting.rate
    return _Effect("load", factor, f"strangers as patient as the users make the load {factor:.3g} times what it is")


def _cold(entry: FaultEntry, setting: _Setting) -> _Effect:
    del entry
    if setting.stack.cached is None:
        raise CannotModel("an empty cache can only be modelled where it is known what it answers: --cached SHARE")
    return _Effect("flush", 0.0, "the cache is empty at once, and filled by good answers only")


def _engines_hit(entry: FaultEntry, stack: Stack) -> tuple[int, str]:
    target = entry.target
    whom = "nobody" if target is None else target.name or target.role or ""
    if target is None or not (target.node or target.role == "engine" or whom.startswith("engine-")):
        raise CannotModel(f"`{entry.name}` harms {whom}, which is neither an engine nor the front door. {_KNOWN}")
    hit = min(stack.engines, target.count or 1)
    return hit, f"{hit} of {stack.engines} engines"


_MODELS: Mapping[str, Callable[[FaultEntry, _Setting], _Effect]] = {
    "stop": _stop,
    "gpu_throttle": _slower,
    "net_latency": _later,
    "load_surge": _more,
    "cache_flush": _cold,
}


def _clients(experiment: Experiment, leading: Load, rate: float, behaviour: ClientBehaviour) -> str:
    resends = "never resend" if not behaviour.retries else f"resend {behaviour.retries} times, {_pause(behaviour)}"
    of = f", as those of {leading.name} do" if len(experiment.loads) > 1 else ""
    return f"{Rate(rate)} of clients that wait {Duration(behaviour.timeout_s)} and {resends}{of}"


def _pause(behaviour: ClientBehaviour) -> str:
    return f"after {Duration(behaviour.backoff_s)}" if behaviour.backoff_s else "at once"


def _stack(stack: Stack, capacity: float) -> str:
    line = "a line without end" if stack.queue == float("inf") else f"a line of at most {stack.queue:.0f}"
    left = "ends" if stack.cancels else "goes on with"
    budget = "" if stack.budget is None else f", resends at most {_share(stack.budget)} of first tries"
    cached = "" if stack.cached is None else f", a cache that answers {_share(stack.cached)}"
    what = f"{Rate(capacity)} in {stack.slots} places, {line}, {left} the work of clients that left"
    return what + budget + cached


def _share(value: float) -> str:
    return str(Ratio(float(f"{value:.3g}")))
