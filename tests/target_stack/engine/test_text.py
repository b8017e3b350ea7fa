"""The words of the simulated model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.engine.text import Sampling, Tokenizer, UnknownTokenError, answer, pieces, quote

RAG = (
    "<|system|>\nAnswer from the context.\n<|user|>\nContext:\n"
    "[doc-17] Our headphones can be returned within 45 days. Keep the box, please.\n"
    "[doc-3] Desk lamps can be returned within 14 days.\n"
    "Question: How long do I have to return headphones?\n<|assistant|>\n"
)


@given(st.text())
def test_tokens_joined_are_the_text(text):
    assert "".join(pieces(text)) == text


def test_a_token_is_about_a_word():
    assert pieces("They're back-ordered, 2.5 weeks.") == ["They're", " back-ordered", ",", " 2.5", " weeks", "."]


def test_token_ids_are_the_same_in_every_process_and_lead_back_to_the_text():
    here, there = Tokenizer(), Tokenizer()
    ids = here.encode("a small lamp")
    assert there.encode("a small lamp") == ids
    assert here.decode(ids) == "a small lamp"


def test_an_id_that_was_never_handed_out_is_refused():
    with pytest.raises(UnknownTokenError, match="out of vocabulary"):
        Tokenizer().decode([7])


def test_the_answer_quotes_the_context_sentence_that_fits_the_question():
    found = answer(RAG, seed=1, sampling=Sampling(max_tokens=24))
    assert "".join(found.pieces) == "Our headphones can be returned within 45 days."
    assert found.finish == "stop"


def test_a_natural_end_is_a_token_without_text():
    assert answer(RAG, seed=1, sampling=Sampling(max_tokens=24)).pieces[-1] == ""


def test_without_the_right_document_the_right_fact_is_absent():
    assert "45" not in (quote(RAG.replace("[doc-17] Our headphones can be returned within 45 days.", "[doc-9] ")) or "")


def test_a_context_without_a_common_word_is_not_quoted():
    assert quote("Context:\n[doc-1] Zebras graze.\nQuestion: lamp price?\n") is None


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_the_same_prompt_and_seed_give_the_same_answer(prompt, max_tokens):
    sampling = Sampling(max_tokens=max_tokens)
    assert answer(prompt, seed=3, sampling=sampling) == answer(prompt, seed=3, sampling=sampling)


@given(st.text(), st.integers(min_value=1, max_value=80))
def test_an_answer_never_exceeds_max_tokens_and_never_is_nothing(prompt, max_tokens):
    assert 1 <= len(answer(prompt, seed=0, sampling=Sampling(max_tokens=max_tokens)).pieces) <= max_tokens


def test_ignore_eos_gives_exactly_max_tokens():
    found = answer(RAG, seed=0, sampling=Sampling(max_tokens=60, ignore_eos=True))
    assert (len(found.pieces), found.finish) == (60, "length")


def test_a_stop_string_ends_the_answer_before_itself():
    found = answer(RAG, seed=0, sampling=Sampling(max_tokens=24, stop=("within",)))
    assert ("".join(found.pieces), found.finish, found.stop_reason) == (
        "Our headphones can be returned ",
        "stop",
        "within",
    )


def test_choices_of_one_request_differ():
    first, second = (answer("hi", seed=0, sampling=Sampling(max_tokens=16, draw=draw)) for draw in (0, 1))
    assert first != second


def test_a_reference_in_the_prompt_comes_back_in_the_answer():
    found = answer("<|user|>\nHello! Reference: r-17\n<|assistant|>\n", seed=0, sampling=Sampling(max_tokens=200))
    assert "".join(found.pieces).endswith(" Reference: r-17.")
