"""The network of all-MiniLM-L6-v2 as an ONNX graph whose numbers stay in the weights' own file.

    token ids ─► word + position + type 0 ─► norm ─► 6 layers of (attention, norm, feed forward, norm)
              ─► mean over the real tokens ─► length 1

Every tensor is external data at its place in `model.safetensors`, so the graph is a few kilobytes, nothing is copied
and the runtime maps the pages that it needs. Sizes are those of the model's `config.json`: 12 heads, 6 layers,
epsilon 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onnx import NodeProto, TensorProto, helper

from target_stack.embedder.minilm.weights import Header, Place

OUTPUT = "sentence"
_HEADS, _LAYERS, _EPSILON, _OPSET, _IR = 12, 6, 1e-12, 20, 10


class _Graph:
    """Collects nodes, weights and constants; every method gives back the name of a value."""

    def __init__(self, header: Header, location: str) -> None:
        self._header, self._location = header, location
        self.width = header.tensors["embeddings.LayerNorm.weight"].shape[0]
        self.nodes: list[NodeProto] = []
        self.initializers: dict[str, TensorProto] = {}

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def weight(self, name: str) -> str:
        place = self._header.tensors[name]
        self.initializers.setdefault(name, _external(name, place, self._location))
        return name

    def constant(self, values: Sequence[float], kind: int = TensorProto.INT64, *, scalar: bool = False) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers[name] = helper.make_tensor(name, kind, [] if scalar else [len(values)], values)
        return name

    def linear(self, value: str, layer: str) -> str:
        """The weights lie as (out, in), which Gemm takes transposed without a copy."""
        return self.op("Gemm", value, self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias"), transB=1)

    def norm(self, value: str, layer: str) -> str:
        scale, bias = self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")
        return self.op("LayerNormalization", value, scale, bias, axis=-1, epsilon=_EPSILON)

    def scalar(self, value: float) -> str:
        return self.constant([value], TensorProto.FLOAT, scalar=True)


def _external(name: str, place: Place, location: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=place.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", place.offset), ("length", place.length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def build(header: Header, location: str) -> bytes:
    """The serialized model; `location` is the weights' file name. Raises KeyError for a tensor that is not there."""
    graph = _Graph(header, location)
    mask = graph.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    hidden = _embeddings(graph)
    penalty = _penalty(graph, mask)
    for number in range(_LAYERS):
        hidden = _layer(graph, hidden, penalty, f"encoder.layer.{number}")
    _pooled(graph, hidden, mask)
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "tokens"])
        for n in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", graph.width])
    made = helper.make_graph(graph.nodes, "minilm", inputs, [output], list(graph.initializers.values()))
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    serialized: bytes = model.SerializeToString()
    return serialized


def _embeddings(graph: _Graph) -> str:
    """Rows (batch x tokens, width): two axes serve every matrix product."""
    words = graph.op("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    zero, one = graph.constant([0]), graph.constant([1])
    tokens = graph.op("Shape", "input_ids", start=1, end=2)
    places = graph.op("Slice", graph.weight("embeddings.position_embeddings.weight"), zero, tokens)
    kind = graph.op("Slice", graph.weight("embeddings.token_type_embeddings.weight"), zero, one)
    summed = graph.op("Add", graph.op("Add", words, kind), places)
    rows = graph.op("Reshape", summed, graph.constant([-1, graph.width]))
    return graph.norm(rows, "embeddings.LayerNorm")


def _penalty(graph: _Graph, mask: str) -> str:
    """0 for a real token and a huge negative number for padding, added to the attention scores."""
    missing = graph.op("Sub", graph.scalar(1.0), mask)
    scaled = graph.op("Mul", missing, graph.scalar(-3.0e38))
    return graph.op("Unsqueeze", scaled, graph.constant([1, 2]))


def _layer(graph: _Graph, hidden: str, penalty: str, layer: str) -> str:
    attended = graph.linear(
        _attention(graph, hidden, penalty, f"{layer}.attention.self"), f"{layer}.attention.output.dense"
    )
    hidden = graph.norm(graph.op("Add", attended, hidden), f"{layer}.attention.output.LayerNorm")
    inner = graph.op("Gelu", graph.linear(hidden, f"{layer}.intermediate.dense"))
    return graph.norm(
        graph.op("Add", graph.linear(inner, f"{layer}.output.dense"), hidden), f"{layer}.output.LayerNorm"
    )


def _attention(graph: _Graph, hidden: str, penalty: str, layer: str) -> str:
    query, value = (_heads(graph, graph.linear(hidden, f"{layer}.{part}"), (0, 2, 1, 3)) for part in ("query", "value"))
    key = _heads(graph, graph.linear(hidden, f"{layer}.key"), (0, 2, 3, 1))
    scores = graph.op("Mul", graph.op("MatMul", query, key), graph.scalar(1 / math.sqrt(graph.width / _HEADS)))
    weights = graph.op("Softmax", graph.op("Add", scores, penalty), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", weights, value), perm=(0, 2, 1, 3))
    return graph.op("Reshape", mixed, graph.constant([-1, graph.width]))


def _heads(graph: _Graph, rows: str, order: tuple[int, ...]) -> str:
    shape = graph.op("Concat", graph.op("Shape", "input_ids"), graph.constant([_HEADS, -1]), axis=0)
    return graph.op("Transpose", graph.op("Reshape", rows, shape), perm=order)


def _pooled(graph: _Graph, hidden: str, mask: str) -> None:
    shape = graph.op("Concat", graph.op("Shape", "input_ids"), graph.constant([-1]), axis=0)
    weight = graph.op("Unsqueeze", mask, graph.constant([2]))
    tokens = graph.op("Mul", graph.op("Reshape", hidden, shape), weight)
    summed = graph.op("ReduceSum", tokens, graph.constant([1]), keepdims=0)
    # The mean has the direction of the sum, and only the direction is left after the division by the length.
    length = graph.op("ReduceL2", summed, graph.constant([1]), keepdims=1)
    graph.op("Div", summed, graph.op("Max", length, graph.scalar(1e-12)), name=OUTPUT)
