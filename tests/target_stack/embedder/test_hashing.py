"""The hashing embedder finds the right document of our corpus for every question."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.embedder.hashing import DIMENSIONS, embed, similarity, words
from target_stack.fixtures import fixtures_dir, read_documents, read_lines

QUESTIONS = tuple(read_lines(fixtures_dir() / "prompts" / "product-questions.jsonl"))
BODIES = {document.id: document.body for document in read_documents()}
VECTORS = {name: embed(body) for name, body in BODIES.items()}


def top(question, most=3):
    asked = embed(question)
    return sorted(VECTORS, key=lambda name: -similarity(asked, VECTORS[name]))[:most]


def sentences(text):
    return re.split(r"(?<=[.!?])\s+", text)


@given(st.text(alphabet="abc 123.!", min_size=1))
def test_a_vector_has_length_one_or_zero_and_depends_on_the_text_alone(text):
    vector = embed(text)
    assert len(vector) == DIMENSIONS
    assert math.isclose(math.hypot(*vector), 1.0 if words(text) else 0.0, abs_tol=1e-9)
    assert embed(text) == vector


def test_the_vectors_are_the_same_in_every_version():
    assert [round(x, 6) for x in embed("kettle") if x][:4] == pytest.approx([-0.288675, 0.288675, 0.288675, -0.288675])


def test_related_spellings_are_near_and_unrelated_words_are_not():
    near, far = similarity(embed("returned"), embed("returns")), similarity(embed("returned"), embed("battery"))
    assert near > 0.2
    assert abs(far) < 0.15


def test_the_corpus_is_large_enough_and_its_sentences_fit_an_answer():
    assert len(BODIES) >= 40
    assert len(QUESTIONS) >= 60
    lengths = [len(sentence.split()) for body in BODIES.values() for sentence in sentences(body)]
    assert min(lengths) >= 8
    assert max(lengths) <= 18


@pytest.mark.parametrize("record", QUESTIONS, ids=lambda record: record["id"])
def test_the_right_document_is_among_the_first_three(record):
    assert record["document"] in top(record["question"])


@pytest.mark.parametrize("record", QUESTIONS, ids=lambda record: record["id"])
def test_one_sentence_of_the_retrieved_context_answers_the_question_better_than_all_others(record):
    asked = set(words(record["question"]))
    context = [sentence for name in top(record["question"]) for sentence in sentences(BODIES[name])]
    overlap = {sentence: len(asked & set(words(sentence))) for sentence in context}
    best, second, *_ = sorted(overlap, key=lambda sentence: -overlap[sentence])
    assert overlap[best] > overlap[second]
    assert all(expected in best for expected in record["expect"])


def test_every_prompt_has_an_id_of_its_own():
    for path in (fixtures_dir() / "prompts").glob("*.jsonl"):
        ids = [record["id"] for record in read_lines(path)]
        assert len(set(ids)) == len(ids), path.name
