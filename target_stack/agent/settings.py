"""Every number that the agents decide by, and where they find the others.

    {"name": "agent", "listen": "127.0.0.1:8100", "gateway": "http://...", "tools": "http://...", "model": "...",
     "data_dir": "/...", "tokens": {"support": "...", "approver": "..."},
     "waits": {...}, "tries": {...}, "checkpoint": "disk", "key_policy": "per_step", "clock": "steady"}

`checkpoint: memory` keeps tasks as long as the process lives; `key_policy: per_try` gives every try of a side effect a
key of its own; `clock: wall` measures deadlines and leases by a clock that can be stepped. All three are there to be
planted as mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from target_stack.gateway.policies.settings import build
from target_stack.tools.rules import ToolRules

KeyPolicy = Literal["per_step", "per_try"]


@dataclass(frozen=True)
class Waits:
    """The longest wait of every kind, in seconds. `dependency_s` is for tasks named at submit, `agent_s` for the other
    agent's answer, `lease_s` how long a silent process keeps a task.
    """

    model_s: float = 3.0
    tool_s: float = 1.5
    agent_s: float = 3.0
    dependency_s: float = 6.0
    task_s: float = 8.0
    lease_s: float = 2.0

    def __post_init__(self) -> None:
        """Raises ValueError for a wait that the whole task's would always cut short."""
        for name in ("model_s", "tool_s"):
            if getattr(self, name) > self.task_s:
                raise ValueError(f"waits: {name} is longer than task_s, which would always fire first")


@dataclass(frozen=True)
class Tries:
    """How often a step is tried, and the pause before the next try (full jitter, doubling from `base_s`)."""

    most: int = 4
    base_s: float = 0.1
    cap_s: float = 1.0


@dataclass(frozen=True)
class QueueRules:
    """`slots` tasks are worked on at once by each agent; a waiting task gains one rank of priority per `aging_s`."""

    slots: int = 16
    aging_s: float = 2.0
    most_open: int = 256


@dataclass(frozen=True)
class AgentSettings:
    """The policies of the runtime."""

    waits: Waits = field(default_factory=Waits)
    tries: Tries = field(default_factory=Tries)
    queue: QueueRules = field(default_factory=QueueRules)
    checkpoint: Literal["disk", "memory"] = "disk"
    key_policy: KeyPolicy = "per_step"
    tool_rules: ToolRules = field(default_factory=ToolRules)
    clock: Literal["steady", "wall"] = "steady"


_POLICIES = ("waits", "tries", "queue", "checkpoint", "key_policy", "tool_rules", "clock")
_PLACES = ("name", "listen", "gateway", "tools", "model", "data_dir", "tokens", "seed")


@dataclass(frozen=True)
class AgentConfig:
    """All of it, checked. `tokens` are what each agent shows to the tools; `seed` makes ids and dice repeatable."""

    listen: str
    gateway: str
    tools: str
    model: str
    data_dir: str
    tokens: Mapping[str, str]
    seed: int | None
    settings: AgentSettings

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Read the component's config. Raises ValueError or KeyError naming what is wrong."""
        unknown = sorted(set(config) - {*_POLICIES, *_PLACES})
        if unknown:
            raise ValueError(f"agent config: unknown key {unknown[0]!r}")
        return cls(
            listen=config["listen"],
            gateway=config["gateway"].rstrip("/"),
            tools=config["tools"].rstrip("/"),
            model=config["model"],
            data_dir=config["data_dir"],
            tokens=dict(config.get("tokens", {})),
            seed=config.get("seed"),
            settings=build(AgentSettings, {k: config[k] for k in _POLICIES if k in config}, "agent config"),
        )
