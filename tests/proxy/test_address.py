"""Addresses in Go's reading."""

from __future__ import annotations

import pytest

from chaos.proxy.address import AddressError, Endpoint, listen, resolve


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("notahost", "address notahost: missing port in address"),
        ("127.0.0.1:999999", "address 999999: invalid port"),
        ("127.0.0.1:nope", "lookup tcp/nope: unknown port"),
        ("1:2:3", "address 1:2:3: too many colons in address"),
        ("[::1", "address [::1: missing ']' in address"),
        ("[::1]", "address [::1]: missing port in address"),
        ("a[b:1", "address a[b:1: unexpected '[' in address"),
    ],
)
def test_an_unusable_address_is_refused_in_gos_words(address: str, complaint: str) -> None:
    with pytest.raises(AddressError) as caught:
        resolve(address)
    assert str(caught.value) == complaint
    with pytest.raises(AddressError) as caught:
        listen(address)
    assert str(caught.value) == f"listen tcp: {complaint}"


@pytest.mark.parametrize(
    ("address", "endpoint", "text"),
    [
        ("127.0.0.1:80", Endpoint("127.0.0.1", 80), "127.0.0.1:80"),
        ("localhost:80", Endpoint("127.0.0.1", 80), "127.0.0.1:80"),
        ("[::1]:80", Endpoint("::1", 80), "[::1]:80"),
        (":8080", Endpoint("", 8080), ":8080"),
        ("", Endpoint("", 0), ":0"),
    ],
)
def test_an_address_resolves_to_numbers(address: str, endpoint: Endpoint, text: str) -> None:
    assert resolve(address) == endpoint
    assert str(resolve(address)) == text
