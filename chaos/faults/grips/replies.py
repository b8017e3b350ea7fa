"""What a control call that did not succeed tells a fault."""

from __future__ import annotations

from chaos.ports import HttpReply


def nobody_there(reply: HttpReply) -> bool:
    """Whether the server itself is gone: holds, toxics and closed listeners live in its memory and went with it."""
    return reply.status == 0 and (reply.error or "").startswith(("absent", "refused"))


def told(reply: HttpReply) -> str:
    """The reply in a few words, for a message."""
    if reply.status == 0:
        return f"no answer ({reply.error})"
    return f"status {reply.status} {reply.body.strip()[:200]}".rstrip()
