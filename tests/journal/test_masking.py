"""Secrets stay out of the journal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.journal.masking import MASK, Mask, is_secret_name


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Authorization",
        "api_key",
        "x-api-key",
        "apiKey",
        "APIKey",
        "HF_TOKEN",
        "dbPassword",
        "client_secret",
        "cookie",
    ],
)
def test_a_secret_is_known_by_the_name_of_its_field(name):
    assert is_secret_name(name)
    assert Mask().value({name: "hunter22"}) == {name: MASK}


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "tokens",
        "key",
        "keyboard",
        "primary_key_count",
        "tokenizer",
        "author",
        "token_file",
        "password-path",
    ],
)
def test_an_innocent_name_keeps_its_value(name):
    assert not is_secret_name(name)
    assert Mask().value({name: "12"}) == {name: "12"}


def test_a_registered_secret_is_cut_out_of_any_text_at_any_depth():
    mask = Mask(["s3cr3t!", "s3cr3t!-longer"])
    value = {"why": ["GET /?k=s3cr3t!-longer failed", {"s3cr3t!": ("s3cr3t!",)}]}
    assert mask.value(value) == {"why": [f"GET /?k={MASK} failed", {MASK: [MASK]}]}


def test_credentials_in_transit_are_masked_in_running_text():
    text = "sent Authorization: Bearer abcdefgh12345678 to http://me:pass@host:80/x"
    assert Mask().text(text) == f"sent Authorization: Bearer {MASK} to http://me:{MASK}@host:80/x"


def test_a_secret_too_short_to_mask_is_refused():
    with pytest.raises(ValueError, match="4 characters"):
        Mask(["abc"])


def test_other_values_become_text_and_numbers_stay():
    assert Mask().value({"a": 1.5, "b": None, "c": True, "d": complex(1, 2)}) == {
        "a": 1.5,
        "b": None,
        "c": True,
        "d": "(1+2j)",
    }


@given(st.text(min_size=4, max_size=12), st.text(max_size=20), st.text(max_size=20))
def test_no_registered_secret_survives(secret, before, after):
    masked = Mask([secret]).text(before + secret + after)
    assert secret not in masked.replace(MASK, "\0")
