"""Secrets stay out of the journal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.journal.masking import MASK, Mask, is_secret_name, secrets_in


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


@pytest.mark.parametrize(
    "text",
    [
        "GET http://host/v1?api_key={}&n=1 failed",
        "GET http://host/v1?n=1&X-Amz-Signature={}",
        "spawned with HF_TOKEN={} in its environment",
        "--admin-password={} was given",
        "x-api-key: {}",
        "headers {{'X-Api-Key': '{}', 'accept': '*/*'}}",
        '{{"client_secret": "{}"}}',
        'the body was "{{\\"api_key\\": \\"{}\\"}}"',
        "password: {}",
        "refused: Bearer {} is not known here",
        "connect to postgres://me:{}@host:5432/db",
        "connect to http://me:p@{}@host/db",
    ],
)
def test_a_secret_is_known_by_what_stands_before_it_in_running_text(text):
    masked = Mask().text(text.format("hunter22-swordfish"))
    assert "swordfish" not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghij0123456789",
        "sk-abcdefghijklmnop0123",
        "hf_abcdefghijklmnopqrst",
        "ghp_abcdefghijklmnopqrst0123",
        "xoxb-1234567890-abcdef",
        "AKIAABCDEFGHIJKLMNOP",
        "nvapi-abcdefghijklmnop0123",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIcut",
    ],
)
def test_the_keys_of_well_known_services_are_known_by_their_shape(key):
    assert Mask().text(f"the model said ({key})") == f"the model said ({MASK})".replace(
        ")", "" if key.endswith("cut") else ")"
    )


def test_a_token_in_the_place_of_a_user_is_masked_and_a_user_is_not():
    assert Mask().text("https://0123456789abcdef0123@host/x") == f"https://{MASK}@host/x"
    assert Mask().text("postgres://postgres@127.0.0.1/x") == "postgres://postgres@127.0.0.1/x"


def test_headers_as_pairs_variables_as_records_and_options_before_their_values():
    value = {
        "headers": [["Authorization", "abc"], ("accept", "text")],
        "env": [{"name": "HF_TOKEN", "value": "abc"}, {"name": "HOME", "value": "here"}],
        "argv": ["serve", "--api-key", "abc", "--port", "80"],
        "secrets": {"a": [1]},
    }
    assert Mask().value(value) == {
        "headers": [["Authorization", MASK], ["accept", "text"]],
        "env": [{"name": "HF_TOKEN", "value": MASK}, {"name": "HOME", "value": "here"}],
        "argv": ["serve", "--api-key", MASK, "--port", "80"],
        "secrets": MASK,
    }


@pytest.mark.parametrize(
    "text",
    [
        "time to first token: 0.123456789s",
        "no first token: timeout",
        "ttft=0.25 tokens=128 max_tokens=5",
        "the lock is held by sk-1",
        "Unexpected token: } in JSON",
        "gateway_requests_total{route=chat,outcome=ok}",
        "http://127.0.0.1:8000/metrics?after=12345678",
        "token_file=/run/admin.token",
    ],
)
def test_ordinary_sentences_stay_as_they_are(text):
    assert Mask().text(text) == text


def test_secrets_of_the_environment_are_its_long_values_of_secret_names():
    environment = {"HF_TOKEN": "hf-0123456789", "API_KEY": "short", "HOME": "/home/me", "AUTH_TOKEN": "/run/token"}
    assert secrets_in(environment) == {"hf-0123456789"}
