"""A toxic as the API knows it: a kind with settings, a name, a direction, a share of connections; what it touched."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from chaos.proxy.gojson import encode, encode_float32
from chaos.proxy.toxics.stub import Attributes

Direction = Literal["upstream", "downstream"]


@dataclass
class Hits:
    """What a toxic has really touched, the evidence that it was in force."""

    connections: int = 0
    chunks: int = 0
    bytes: int = 0
    ends: int = 0


@dataclass(eq=False)
class Toxic:
    """`stream` is echoed as typed, `direction` is what it means. `toxicity` is not range-checked, as in Toxiproxy."""

    name: str
    stream: str
    attributes: Attributes
    toxicity: float = 1.0
    hits: Hits = field(default_factory=Hits)

    @property
    def direction(self) -> Direction:
        """The way in which it acts: upstream is client to server."""
        return "upstream" if self.stream.lower() == "upstream" else "downstream"

    def to_json(self) -> str:
        """As the API shows it."""
        attributes = encode(values_of(self.attributes))
        return (
            f'{{"attributes":{attributes},"name":{encode(self.name)},"type":{encode(self.attributes.kind)},'
            f'"stream":{encode(self.stream)},"toxicity":{encode_float32(self.toxicity)}}}'
        )


def names_of(attributes: type[Attributes] | Attributes) -> tuple[str, ...]:
    """The setting names of a kind, in order."""
    return tuple(each.name for each in fields(attributes))


def values_of(attributes: Attributes) -> dict[str, Any]:
    """The settings and their values."""
    return {name: getattr(attributes, name) for name in names_of(attributes)}
