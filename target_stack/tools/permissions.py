"""Who may call what: every agent has a token of its own and the fewest tools that it can work with. Pure.

    {"support": {"token_sha256": "...", "tools": {"search_docs": {}, "open_ticket": {"order": {"of_customer": "C-7"}}}}}

A tool that is not named is refused. A constraint narrows one argument: `at_most` a number, `one_of` some values, or an
order `of_customer`. The file holds hashes, so that reading it gives nobody an identity.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

_CONSTRAINTS = ("at_most", "one_of", "of_customer")
_AGENT_KEYS = ("token_sha256", "tools")

OwnerOf = Callable[[str], str | None]
"""The customer of an order."""


def token_hash(token: str) -> str:
    """As it stands in the configuration."""
    return hashlib.sha256(token.encode()).hexdigest()


def agent_token(secret: bytes, name: str) -> str:
    """The token of an agent, made from the stack's secret: whoever starts the parts can tell it to both sides."""
    return hmac.new(secret, f"agent/{name}".encode(), "sha256").hexdigest()


def with_token_hashes(agents: Mapping[str, Mapping[str, Any]], secret: bytes) -> dict[str, dict[str, Any]]:
    """The agents of a configuration, each with the hash of its token."""
    return {name: {**record, "token_sha256": token_hash(agent_token(secret, name))} for name, record in agents.items()}


@dataclass(frozen=True)
class Agent:
    """One identity. `tools` maps a tool to its constrained arguments, and those to `{constraint: bound}`."""

    name: str
    token_sha256: str
    tools: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    @classmethod
    def from_config(cls, name: str, record: Mapping[str, Any]) -> Self:
        """Read one entry. Raises ValueError naming what is unknown."""
        _known(record, _AGENT_KEYS, f"agent {name}")
        for tool, arguments in record.get("tools", {}).items():
            for argument, constraints in arguments.items():
                _known(constraints, _CONSTRAINTS, f"agent {name}: {tool}.{argument}")
        return cls(name, str(record.get("token_sha256", "")), record.get("tools", {}))

    def refusal(self, tool: str, arguments: Mapping[str, Any], owner_of: OwnerOf) -> str | None:
        """Why this agent may not make this call; None when it may."""
        if tool not in self.tools:
            return f"{self.name} may not call {tool}"
        for argument, constraints in self.tools[tool].items():
            for constraint, bound in constraints.items():
                if not _holds(constraint, bound, arguments.get(argument), owner_of):
                    return f"{self.name} may call {tool} only with {argument} {constraint.replace('_', ' ')} {bound}"
        return None


def _known(record: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for key in record:
        if key not in names:
            raise ValueError(f"{where}: unknown key {key!r}; known are {', '.join(names)}")


def _holds(constraint: str, bound: Any, value: Any, owner_of: OwnerOf) -> bool:
    if constraint == "at_most":
        return isinstance(value, int) and value <= bound
    if constraint == "one_of":
        return value in bound
    return isinstance(value, str) and owner_of(value) == bound


@dataclass(frozen=True)
class Register:
    """All agents that there are."""

    agents: tuple[Agent, ...]

    @classmethod
    def from_config(cls, records: Mapping[str, Mapping[str, Any]]) -> Self:
        """Read `config["agents"]`. Raises ValueError."""
        return cls(tuple(Agent.from_config(name, record) for name, record in records.items()))

    def identify(self, token: str) -> Agent | None:
        """Whose token this is. Takes equally long for every wrong one."""
        given, found = token_hash(token), None
        for agent in self.agents:
            if hmac.compare_digest(given, agent.token_sha256):
                found = agent
        return found
