"""What a control call that did not succeed tells a fault."""

from __future__ import annotations

from chaos.ports import HttpReply


def nobody_there(reply: HttpReply) -> bool:
    """Whether the server itself is gone: holds, toxics and closed listeners live in its memory and went with it."""
    return reply.status == 0 and (reply.error or "").startswith(("absent", "refused"))


def by_hand(call: str, token_file: str | None) -> str:
    """The command by which a person makes a call. The shell reads the token, so that no message holds it."""
    allowed = f"-H \"Authorization: Bearer $(cat '{token_file}')\" " if token_file else ""
    return f"curl {allowed}{call}"


def told(reply: HttpReply) -> str:
    """The reply in a few words, for a message."""
    if reply.status == 0:
        return f"no answer ({reply.error})"
    return f"status {reply.status} {reply.body.strip()[:200]}".rstrip()
