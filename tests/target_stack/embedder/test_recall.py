"""The standard query set: how often the right document is among the first three, with each embedder."""

from __future__ import annotations

import re

import numpy as np
import pytest

from target_stack.embedder.embedding import MODELS, load
from target_stack.embedder.hashing import words
from target_stack.fixtures import fixtures_dir, read_documents, read_lines

QUESTIONS = tuple(read_lines(fixtures_dir() / "prompts" / "product-questions.jsonl"))
DOCUMENTS = read_documents()
BODIES = {document.id: document.body for document in DOCUMENTS}


@pytest.fixture(scope="module", params=MODELS)
def found(request: pytest.FixtureRequest) -> tuple[str, list[list[str]]]:
    """The model, and the documents that it finds for every question, nearest first."""
    model = load(request.param)
    corpus = np.array([one.vector for one in model.embed([document.body for document in DOCUMENTS])])
    asked = np.array([one.vector for one in model.embed([record["question"] for record in QUESTIONS])])
    order = np.argsort(-(asked @ corpus.T), axis=1)
    return request.param, [[DOCUMENTS[place].id for place in row[:3]] for row in order]


def recall(found: list[list[str]], most: int) -> float:
    hits = sum(record["document"] in names[:most] for record, names in zip(QUESTIONS, found, strict=True))
    return hits / len(QUESTIONS)


def test_the_right_document_is_among_the_first_three(found: tuple[str, list[list[str]]]) -> None:
    """Both are pinned whole, so that a change of either model or of the fixtures is seen."""
    model, names = found
    pinned = {"all-MiniLM-L6-v2": (1.0, 1.0), "hashing-embedder-384": (1.0, 1.0)}
    assert (recall(names, 1), recall(names, 3)) == pinned[model]


def test_one_sentence_of_the_context_answers_better_than_all_others(found: tuple[str, list[list[str]]]) -> None:
    """The simulated engine quotes the sentence that shares most words with the question; it must be the right one."""
    for record, names in zip(QUESTIONS, found[1], strict=True):
        asked = set(words(record["question"]))
        context = [sentence for name in names for sentence in re.split(r"(?<=[.!?])\s+", BODIES[name])]
        best, second, *_ = sorted(context, key=lambda sentence: -len(asked & set(words(sentence))))
        assert len(asked & set(words(best))) > len(asked & set(words(second))), record["id"]
        assert all(expected in best for expected in record["expect"]), record["id"]
