"""OpenAI's embeddings wire."""

from __future__ import annotations

import base64
import struct

import pytest

from target_stack.embedder.api import BadRequest, parse, reply
from target_stack.embedder.embedding import Embedded, HashingEmbedder

KETTLE, TENT = HashingEmbedder().embed(["green kettle", "tent"])


def test_one_text_gets_one_vector_in_openai_shape():
    assert reply(parse({"input": "green kettle"}), [KETTLE], "h") == {
        "object": "list",
        "model": "h",
        "data": [{"object": "embedding", "index": 0, "embedding": list(KETTLE.vector)}],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }


def test_many_texts_keep_their_order():
    answer = reply(parse({"input": ["a", "b"]}), [Embedded((1.0,), 3), Embedded((2.0,), 4)], "h")
    assert [(d["index"], d["embedding"]) for d in answer["data"]] == [(0, [1.0]), (1, [2.0])]
    assert answer["usage"] == {"prompt_tokens": 7, "total_tokens": 7}


def test_base64_holds_the_same_numbers_as_little_endian_floats():
    text = reply(parse({"input": "tent", "encoding_format": "base64"}), [TENT], "h")["data"][0]["embedding"]
    assert struct.unpack("<384f", base64.b64decode(text)) == pytest.approx(TENT.vector, abs=1e-7)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", 1]}, "input"),
        ({"input": ["a"] * 257}, "input"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "dimensions": 3}, "dimensions"),
    ],
)
def test_a_wrong_request_is_refused_with_the_field(body, param):
    with pytest.raises(BadRequest) as refused:
        parse(body)
    assert refused.value.to_json()["error"]["param"] == param
