"""Text columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.journal.texts import Texts

WORDS = st.lists(st.sampled_from(["good", "failed", "", None]), max_size=12)


def column(words, *, encoded=True):
    plain = pa.chunked_array([pa.array(words[:3], pa.string()), pa.array(words[3:], pa.string())])
    return Texts.from_arrow(plain.dictionary_encode() if encoded else plain)


@given(WORDS, st.booleans())
def test_it_compares_and_selects_as_an_array_of_texts_does(words, encoded):
    texts, array = column(words, encoded=encoded), np.array([*words, "x"], dtype=object)[:-1]
    assert texts.tolist() == list(texts) == np.asarray(texts).tolist() == words
    assert pa.array(texts, pa.string()).to_pylist() == pa.array(texts).to_pylist() == words
    for word in ("good", "", None, "never heard"):
        assert (texts == word).tolist() == [each == word for each in words]
        assert (texts != word).tolist() == [each != word for each in words]
    assert texts[array == "good"].tolist() == array[array == "good"].tolist()
    assert texts[::2].tolist() == words[::2]
    assert texts.isin({"good", "failed"}).tolist() == [each in ("good", "failed") for each in words]
    assert texts.known.tolist() == [each is not None for each in words]
    assert texts.distinct == tuple(sorted({each for each in words if each is not None}))


def test_one_row_is_its_text():
    texts = column(["good", None, "failed"])
    assert (texts[0], texts[1], texts[-1], len(texts)) == ("good", None, "failed", 3)
    with pytest.raises(IndexError):
        texts[3]


def test_it_has_no_hash_as_an_array_has_none():
    with pytest.raises(TypeError):
        hash(column(["good"]))
