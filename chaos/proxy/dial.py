"""Opening a connection to an upstream without holding up the loop: names are looked up in a thread of their own."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable

from chaos.proxy.address import AddressError, port_number, split
from chaos.proxy.reactor import WRITE, Reactor

Connected = Callable[[socket.socket | None], None]
_Found = list[tuple[socket.AddressFamily, tuple[str, int]]]


class Dial:
    """One attempt, over all addresses of the host in turn.

    `done` gets the socket, or None when none accepted; never before the constructor has returned.
    """

    def __init__(self, reactor: Reactor, address: str, done: Connected) -> None:
        self._reactor = reactor
        self._done: Connected | None = done
        self._socket: socket.socket | None = None
        self._left: _Found = []
        try:
            host, port_text = split(address)
            port = port_number(port_text)
        except AddressError:
            self._fail()
            return
        numeric = _numeric(host or "127.0.0.1", port)
        if numeric:
            self._left = [numeric]
            self._next()
        else:
            threading.Thread(target=self._look_up, args=(host, port), daemon=True).start()

    def cancel(self) -> None:
        """Give up; `done` is not called any more."""
        self._done = None
        self._drop()

    def _look_up(self, host: str, port: int) -> None:
        """In a thread: only `submit` touches the loop."""
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found: _Found = [(entry[0], (str(entry[4][0]), port)) for entry in entries]
        except (OSError, UnicodeError):
            found = []
        self._reactor.submit(lambda: self._looked_up(found))

    def _looked_up(self, found: _Found) -> None:
        if self._done:
            self._left = found
            self._next()

    def _next(self) -> None:
        while self._left:
            family, address = self._left.pop(0)
            try:
                sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            except OSError:
                break  # no descriptors left
            problem = sock.connect_ex(address)
            if problem in (0, errno.EINPROGRESS):
                self._socket = sock
                self._reactor.register(sock.fileno(), WRITE, self._on_ready)
                return
            sock.close()
        self._fail()

    def _on_ready(self, _events: int) -> None:
        sock = self._socket
        if sock is None:
            return
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._drop()
            self._next()
            return
        self._reactor.unregister(sock.fileno(), WRITE)
        self._socket = None
        self._finish(sock)

    def _fail(self) -> None:
        """Later, because a caller must have its Dial before it hears from it."""
        self._reactor.submit(lambda: self._finish(None))

    def _drop(self) -> None:
        if self._socket:
            self._reactor.unregister(self._socket.fileno(), WRITE)
            self._socket.close()
            self._socket = None

    def _finish(self, sock: socket.socket | None) -> None:
        done, self._done = self._done, None
        if done:
            done(sock)
        elif sock:
            sock.close()


def _numeric(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]] | None:
    """The address itself if the host is written in numbers."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return family, (host, port)
    return None
