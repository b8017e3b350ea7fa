"""Secrets never reach the journal: by the name of their field, by their value, and by the forms in which they travel in
text.

A name is looked at word by word, so `api_token` and `x-api-key` are secret, `max_tokens` is a number, and `token_file`
only says where a secret lies. Values that were registered are cut out of every text, also out of the middle of a URL or
an error message. Forms that are known without a name: credentials in URLs, headers, `name=value` of a secret name (in
queries, environments and options), the keys that well-known services give out, JSON web tokens, private keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

MASK = "***"
SHORTEST_SECRET = 4
SHORTEST_OF_ENVIRONMENT = 8
"""A shorter value of an environment variable is masked by its name alone: cut out everywhere, it blots out words."""

_SECRET_WORDS = frozenset(
    {"authorization", "password", "passwords", "passwd", "pwd", "passphrase", "secret", "secrets", "token", "cookie"}
    | {"cookies", "credential", "credentials", "apikey", "bearer", "jwt", "signature", "sig", "auth"}
)
_SECRET_PAIRS = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key"), ("signing", "key")}
    | {("account", "key"), ("encryption", "key"), ("auth", "key"), ("ssh", "key"), ("license", "key")}
)
_PLACES = frozenset({"file", "path", "url", "uri"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)([^/\s:@]*):[^/\s\"'<>]*@")
_TOKEN_AS_USER = re.compile(r"(?<=://)[^/\s:@\"']{20,}@")
_ASSIGNED = re.compile(r"([A-Za-z][\w.-]*)(=)([^\s\"'&,;}\])]+)")
_SAID = re.compile(r"([A-Za-z][\w.-]*)([\"']?\s*[=:]\s*[\"']?)((?=[^\s\"']*\d)[^\s\"'&,;}\])]{8,})")
_QUOTED = re.compile(r"([A-Za-z][\w.-]*)(\\?[\"']?\s*[=:]\s*\\?[\"'])([^\"'\\]+)")
_QUANTITY = re.compile(r"[\d.,]+\w{0,2}")
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\b(?:sk|rk|pk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}|\bnvapi-[\w-]{16,}|\bglpat-[\w-]{16,}"
    r"|\bhf_[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\bA(?:KIA|SIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}",
    re.DOTALL,
)


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret (`Authorization`, `api_key`, `dbPassword`, `x-auth-token`)."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if words and words[-1] in _PLACES:
        return False
    return any(word in _SECRET_WORDS for word in words) or any(pair in _SECRET_PAIRS for pair in pairwise(words))


def secrets_in(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of environment variables that are secret by their name; what they let into may quote them."""
    return frozenset(
        value
        for name, value in environment.items()
        if is_secret_name(name) and len(value) >= SHORTEST_OF_ENVIRONMENT and not value.startswith("/")
    )


class Mask:
    """Masks values of any JSON shape. `secrets` are literal texts that must appear nowhere."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Raises ValueError for a secret so short that masking it would blot out ordinary text."""
        found = sorted(set(secrets), key=len, reverse=True)
        if any(len(secret) < SHORTEST_SECRET for secret in found):
            raise ValueError(f"a secret of fewer than {SHORTEST_SECRET} characters cannot be masked")
        self._literal = re.compile("|".join(map(re.escape, found))) if found else None

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._literal:
            text = self._literal.sub(MASK, text)
        text = _SHAPES.sub(MASK, text)
        text = _BEARER.sub(lambda found: f"{found[1]} {MASK}", text)
        text = _USERINFO.sub(lambda found: f"{found[1]}:{MASK}@", text)
        text = _TOKEN_AS_USER.sub(f"{MASK}@", text)
        for assignment in (_ASSIGNED, _QUOTED, _SAID):
            text = assignment.sub(_if_secret, text)
        return text

    def value(self, value: Any) -> Any:
        """The value without secrets, at any depth; keys are looked at too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._field(str(key), inner, value) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return self._sequence(value)
        if isinstance(value, set | frozenset):
            return [self.value(inner) for inner in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(str(value))

    def _field(self, key: str, value: Any, beside: Mapping[Any, Any]) -> Any:
        """`{"name": "HF_TOKEN", "value": ...}` is how some list variables and headers."""
        named = beside.get("name", beside.get("key")) if key == "value" else None
        secret = is_secret_name(key) or (isinstance(named, str) and is_secret_name(named))
        return MASK if secret else self.value(value)

    def _sequence(self, values: Sequence[Any]) -> list[Any]:
        """A header as a pair, and an option with its value in the next word."""
        pair = len(values) == 2
        masked = []
        for before, value in pairwise([None, *values]):
            names_it = isinstance(before, str) and isinstance(value, str) and (pair or before.startswith("-"))
            masked.append(MASK if names_it and is_secret_name(before) else self.value(value))
        return masked


def _if_secret(found: re.Match[str]) -> str:
    """A number with its unit is no secret: `time to first token: 0.12345s`."""
    name, between, value = found.groups()
    hidden = is_secret_name(name) and not _QUANTITY.fullmatch(value)
    return f"{name}{between}{MASK}" if hidden else found[0]
