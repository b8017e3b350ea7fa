"""Secrets never reach the journal: by the name of their field, by their value, and by the two forms in which they
travel in text.

A name is looked at word by word, so `api_token` and `x-api-key` are secret, `max_tokens` is a number, and `token_file`
only says where a secret lies. Values that were registered are cut out of every text, also out of the middle of a URL or
an error message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

MASK = "***"
SHORTEST_SECRET = 4

_SECRET_WORDS = frozenset(
    {"authorization", "password", "passwd", "passphrase", "secret", "token", "cookie", "credential", "credentials"}
    | {"apikey", "bearer", "jwt"}
)
_SECRET_PAIRS = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key"), ("signing", "key")}
)
_PLACES = frozenset({"file", "path"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret (`Authorization`, `api_key`, `dbPassword`, `x-auth-token`)."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if words and words[-1] in _PLACES:
        return False
    return any(word in _SECRET_WORDS for word in words) or any(pair in _SECRET_PAIRS for pair in pairwise(words))


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
        text = _BEARER.sub(lambda found: f"{found[1]} {MASK}", text)
        return _USERINFO.sub(lambda found: f"{found[1]}:{MASK}@", text)

    def value(self, value: Any) -> Any:
        """The value without secrets, at any depth; keys are looked at too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): MASK if is_secret_name(str(key)) else self.value(inner)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(inner) for inner in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(str(value))
