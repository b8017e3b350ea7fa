"""all-MiniLM-L6-v2 written a second time, with numpy alone, straight from the BERT paper's formulas.

It shares no line with the product: own reader of the weights, own word pieces, own layers. Slow and plain on purpose.
"""

from __future__ import annotations

import json
import math
import struct
import unicodedata
from pathlib import Path

import numpy as np

HEADS, LAYERS, LONGEST = 12, 6, 256


def read_weights(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    records = json.loads(data[8 : 8 + size])
    return {
        name: np.frombuffer(data[8 + size :][slice(*r["data_offsets"])], "<f4").reshape(r["shape"]).astype(np.float64)
        for name, r in records.items()
        if r.get("dtype") == "F32"
    }


def pieces(text: str, vocabulary: dict[str, int]) -> list[int]:
    """BERT's uncased word pieces: strip accents, split at spaces, punctuation and ideographs, longest match first."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if _stands_alone(c) else c for c in plain)
    found = [piece for word in spaced.split() for piece in _word(word, vocabulary)]
    return [vocabulary["[CLS]"], *found[: LONGEST - 2], vocabulary["[SEP]"]]


def _stands_alone(c: str) -> bool:
    kind = unicodedata.category(c)[0]
    return kind == "P" or (c.isascii() and kind == "S") or "\u4e00" <= c <= "\u9fff"


def _word(word: str, vocabulary: dict[str, int]) -> list[int]:
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                found.append(vocabulary[piece])
                start = end
                break
        else:
            return [vocabulary["[UNK]"]]
    return found


class Reference:
    """The whole model in double precision."""

    def __init__(self, folder: Path) -> None:
        self.w = read_weights(folder / "model.safetensors")
        words = (folder / "vocab.txt").read_text("utf-8").split("\n")
        self.vocabulary = {word: number for number, word in enumerate(words) if word}

    def embed(self, text: str) -> np.ndarray:
        ids = pieces(text, self.vocabulary)
        w = self.w
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for n in range(LAYERS):
            x = self.layer(x, f"encoder.layer.{n}")
        mean = x.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def layer(self, x: np.ndarray, name: str) -> np.ndarray:
        q, k, v = (self.heads(self.linear(x, f"{name}.attention.self.{p}")) for p in ("query", "key", "value"))
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
        attended = self.linear(mixed.transpose(1, 0, 2).reshape(x.shape), f"{name}.attention.output.dense")
        x = self.norm(attended + x, f"{name}.attention.output.LayerNorm")
        inner = self.linear(x, f"{name}.intermediate.dense")
        inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        return self.norm(self.linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

    def heads(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-12)
        return scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]
