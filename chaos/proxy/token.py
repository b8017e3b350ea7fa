"""Who may use the admin API: whoever can read one file, which is its owner's alone.

The API is Toxiproxy's, which knows no callers, so without a token file it is open to this machine as there. With one,
every request must say `Authorization: Bearer <token>`.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from chaos.proxy.http import Request, Response, plain

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
Handle = Callable[[Request], Response]


class TokenTrouble(Exception):
    """The token file cannot be used; the message says why and what to do."""


def token_in(path: Path) -> str:
    """The token of a file; a file that is not there is made, for its owner alone. Raises TokenTrouble."""
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & _OTHERS:
                raise TokenTrouble(f"{path} is open to others; chmod 600 {path}")
            token = file.read().strip()
            if not token:
                token = secrets.token_hex(32)
                file.write(f"{token}\n")
    except (OSError, UnicodeError) as problem:
        raise TokenTrouble(f"{path} cannot be used as a token file: {problem}") from problem
    return token


def guarded(handle: Handle, token: str) -> Handle:
    """The same, for those alone who send the token."""
    wanted = f"Bearer {token}".encode()
    refused = plain(401, '{"error":"missing or wrong token","status":401}')

    def answer(request: Request) -> Response:
        said = request.headers.get("authorization", "").encode("utf-8", "replace")
        if hmac.compare_digest(said, wanted):
            return handle(request)
        return replace(refused, headers={**refused.headers, "WWW-Authenticate": "Bearer"})

    return answer
