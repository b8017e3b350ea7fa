"""The admin listener: HTTP connections of the API on the reactor."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http import HTTPStatus

from chaos.proxy.http import PLAIN, BadRequest, Parser, Request, Response, render
from chaos.proxy.reactor import READ, WRITE, Reactor, Timer

_READ_S = 15.0  # to send a whole request
_IDLE_S = 60.0  # between two requests


class Admin:
    """Accepts connections and keeps them until they end."""

    def __init__(self, reactor: Reactor, listener: socket.socket, handle: Callable[[Request], Response]) -> None:
        self._reactor = reactor
        self._listener = listener
        self._handle = handle
        self._open: set[_Conversation] = set()
        reactor.register(listener.fileno(), READ, self._on_ready)

    def _on_ready(self, _events: int) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        client.setblocking(False)
        self._open.add(_Conversation(self._reactor, client, self._handle, self._open.discard))

    def close(self) -> None:
        """Close the listener and all connections."""
        self._reactor.unregister(self._listener.fileno(), READ)
        self._listener.close()
        for conversation in tuple(self._open):
            conversation.close()


class _Conversation:
    """One client: requests are answered in order, one after the other."""

    def __init__(
        self,
        reactor: Reactor,
        sock: socket.socket,
        handle: Callable[[Request], Response],
        ended: Callable[[_Conversation], None],
    ) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reactor = reactor
        self._sock = sock
        self._handle = handle
        self._ended = ended
        self._parser = Parser()
        self._unsent = b""
        self._last = False  # close as soon as everything is sent
        self._mask = READ
        self._timer: Timer = reactor.call_at(reactor.now() + _IDLE_S, self.close)
        reactor.register(sock.fileno(), READ, self._on_ready)

    def _on_ready(self, events: int) -> None:
        try:
            if self._unsent:
                self._send(b"")
            elif events & ~WRITE:
                self._read()
        except OSError:
            self.close()

    def _read(self) -> None:
        try:
            data = self._sock.recv(65536)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self._parser.feed(data)
        self._answer()

    def _answer(self) -> None:
        out = b""
        try:
            while not self._last and (request := self._parser.next()):
                self._last = not request.keep_alive
                response = self._handle(request)
                out += render(response, head_only=request.method == "HEAD", keep_alive=request.keep_alive)
            if self._parser.expects_continue and not out:
                out = b"HTTP/1.1 100 Continue\r\n\r\n"
        except BadRequest as problem:
            self._last = True
            out += _refusal(problem)
        self._send(out)

    def _send(self, data: bytes) -> None:
        self._unsent += data
        try:
            sent = self._sock.send(self._unsent) if self._unsent else 0
        except BlockingIOError:
            sent = 0
        self._unsent = self._unsent[sent:]
        if self._last and not self._unsent:
            self.close()
            return
        mask = WRITE if self._unsent else READ
        self._reactor.modify(self._sock.fileno(), self._mask, mask)
        self._mask = mask
        self._timer.cancel()
        limit_s = _IDLE_S if self._parser.idle else _READ_S
        self._timer = self._reactor.call_at(self._reactor.now() + limit_s, self.close)

    def close(self) -> None:
        """End it. Repeatable."""
        self._timer.cancel()
        if self._sock.fileno() >= 0:
            self._reactor.unregister(self._sock.fileno(), self._mask)
            self._sock.close()
            self._ended(self)


def _refusal(problem: BadRequest) -> bytes:
    """What Go's server says to what is not HTTP."""
    text = f"{problem.status} {HTTPStatus(problem.status).phrase}"
    body = f"{text}: {problem.detail}" if problem.detail else text
    return f"HTTP/1.1 {text}\r\nContent-Type: {PLAIN}\r\nConnection: close\r\n\r\n{body}".encode()
