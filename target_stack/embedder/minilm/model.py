"""all-MiniLM-L6-v2 on the ONNX runtime: texts to unit vectors with a sense of meaning.

The weights are mapped from their own file and never copied whole; what the runtime packs for speed is the only second
copy, of the layers alone. One thread, because the machine belongs to the engines.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from target_stack.cache_folder import cache_folder, cached
from target_stack.embedder.embedding import Embedded
from target_stack.embedder.minilm import graph_version
from target_stack.embedder.minilm.weights import NAME, WEIGHTS, Header, read_header


class MiniLm:
    """The loaded model. `fingerprint` changes when its vectors may."""

    name = NAME

    def __init__(self, folder: Path) -> None:
        """Load it. Raises OSError, ValueError or KeyError for a folder that does not hold the model."""
        header = read_header(folder / WEIGHTS)
        self.fingerprint = _fingerprint(folder / WEIGHTS, header)
        self._session = _session(_graph(header), folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        limit = json.loads((folder / "sentence_bert_config.json").read_text("utf-8"))["max_seq_length"]
        self._tokenizer.enable_truncation(limit)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """One vector a text; a long text is cut at the model's 256 tokens, as its makers do."""
        encoded = self._tokenizer.encode_batch(list(texts))
        mask = np.array([one.attention_mask for one in encoded], dtype=np.int64)
        ids = np.array([one.ids for one in encoded], dtype=np.int64)
        (vectors,) = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
        tokens = mask.sum(axis=1).tolist()
        return [Embedded(tuple(vector), count) for vector, count in zip(vectors.tolist(), tokens, strict=True)]


def _fingerprint(weights: Path, header: Header) -> str:
    """Size and time of change stand for ninety megabytes of numbers, as they do for every build tool."""
    status = weights.stat()
    text = f"{header.digest}:{status.st_size}:{status.st_mtime_ns}:{graph_version.VERSION}"
    return hashlib.sha256(text.encode()).hexdigest()


def _graph(header: Header) -> bytes:
    """The graph depends on the header alone: the numbers stay in their file."""

    def build() -> bytes:
        from target_stack.embedder.minilm import graph  # noqa: PLC0415  # 15 MB that only the first start needs

        return graph.build(header, WEIGHTS)

    name = f"{NAME}-{header.digest[:16]}-v{graph_version.VERSION}.onnx"
    return cached(cache_folder(os.environ) / name, build)


def _session(graph: bytes, folder: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
