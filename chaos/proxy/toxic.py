"""A toxic as the API knows it: a kind with settings, a name, a direction, a share of connections; what it touched."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from chaos.proxy.gojson import encode, encode_float32
from chaos.proxy.toxics.stub import Attributes

Direction = Literal["upstream", "downstream"]
DIRECTIONS: tuple[Direction, ...] = ("upstream", "downstream")


@dataclass
class Hits:
    """What a toxic has really touched, the evidence that it was in force.

    Toxics that choose single requests count connections, the requests that matched, those whose answer was harmed, and
    the events that were; all others count connections, chunks, bytes and ends.
    """

    connections: int = 0
    chunks: int = 0
    bytes: int = 0
    ends: int = 0
    matched: int = 0
    requests: int = 0
    events: int = 0


@dataclass(eq=False)
class Toxic:
    """`stream` is echoed as typed, `direction` is what it means. `toxicity` is not range-checked, as in Toxiproxy.

    `expires_ms` is ours: the toxic goes by itself. `dice` serves kinds that choose single requests.
    """

    name: str
    stream: str
    attributes: Attributes
    toxicity: float = 1.0
    expires_ms: int = 0
    hits: Hits = field(default_factory=Hits)
    dice: random.Random = field(default_factory=random.Random)

    @property
    def direction(self) -> Direction:
        """The way in which it acts: upstream is client to server."""
        return "upstream" if self.stream.lower() == "upstream" else "downstream"

    def to_json(self) -> str:
        """As the API shows it."""
        attributes = encode(values_of(self.attributes))
        expiry = f',"expires_ms":{self.expires_ms}' if self.expires_ms > 0 else ""
        return (
            f'{{"attributes":{attributes},"name":{encode(self.name)},"type":{encode(self.attributes.kind)},'
            f'"stream":{encode(self.stream)},"toxicity":{encode_float32(self.toxicity)}{expiry}}}'
        )


def names_of(attributes: type[Attributes] | Attributes) -> tuple[str, ...]:
    """The setting names of a kind, in order."""
    return tuple(each.name for each in fields(attributes))


def values_of(attributes: Attributes) -> dict[str, Any]:
    """The settings and their values."""
    return {name: getattr(attributes, name) for name in names_of(attributes)}
