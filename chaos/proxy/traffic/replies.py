"""An answer of our own as bytes, such that the client may go on using the connection if it wishes to."""

from __future__ import annotations

from http import HTTPStatus

from chaos.proxy.toxics.per_request import Reply
from chaos.proxy.toxics.stub import End, Item
from chaos.proxy.traffic.messages import Head


def rendered(reply: Reply, request: Head) -> list[Item]:
    """The answer, and the end of the connection if the client asked for that.

    A client that waits for leave to send its body will send the body or not; the connection ends, so that it cannot be
    taken for a request.
    """
    last = not request.keep_alive or "expect" in request.headers
    lines = [f"HTTP/1.1 {reply.status} {phrase_of(reply.status)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    if reply.content_type:
        lines.append(f"Content-Type: {reply.content_type}")
    if reply.status >= 200 and reply.status not in (204, 304):
        lines.append(f"Content-Length: {len(reply.body)}")
    if last:
        lines.append("Connection: close")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    items: list[Item] = [head if request.method == "HEAD" else head + reply.body]
    return [*items, End.CLOSE] if last else items


def phrase_of(status: int) -> str:
    """The words that go with a status, also with one that nobody has registered."""
    return next((each.phrase for each in HTTPStatus if each.value == status), f"Status {status}")
