"""One socket of a connection: what is still unsent, and what the loop is asked to watch for it."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Protocol

from chaos.proxy.reactor import READ, WRITE, Reactor

_LINGER_OFF = struct.pack("ii", 1, 0)  # a close with this sends RST


class Reader(Protocol):
    """Who takes what comes in."""

    @property
    def reading(self) -> bool:
        """Whether anything is wanted now."""
        ...

    def pull(self) -> None:
        """There is something to read, or an end."""
        ...


class Writer(Protocol):
    """Who has unsent bytes here."""

    def flush(self) -> None:
        """More can be written."""
        ...


class Side:
    """One socket: what must still be written to it, and what the loop is asked to watch."""

    __slots__ = ("_mask", "_reactor", "fd", "open", "reads", "recv_into", "send", "sock", "unsent", "writes")

    reads: Reader
    writes: Writer

    def __init__(self, reactor: Reactor, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reactor = reactor
        self._mask = 0
        self.sock = sock
        self.fd = sock.fileno()
        self.recv_into = sock.recv_into
        self.send = sock.send
        self.unsent = b""
        self.open = True
        reactor.register(self.fd, 0, self.on_ready)

    def on_ready(self, events: int) -> None:
        """The loop says that the socket can be written, read, or is broken."""
        if self.unsent and events & ~READ:
            self.writes.flush()
        if self._mask & READ and events & ~WRITE:
            self.reads.pull()

    @property
    def writing(self) -> bool:
        """Whether the loop is asked to say when more can be written."""
        return bool(self._mask & WRITE)

    def watch(self) -> None:
        """Tell the loop what is wanted now."""
        if not self.open:
            return
        mask = (READ if self.reads.reading else 0) | (WRITE if self.unsent else 0)
        if mask != self._mask:
            self._reactor.modify(self.fd, self._mask, mask)
            self._mask = mask

    def write(self, data: bytes | memoryview) -> bool:
        """Send now what the kernel takes and keep the rest. True if all is gone. Raises OSError if the peer is lost."""
        try:
            sent = self.send(data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            self.unsent = b""
            return True
        self.unsent = bytes(data[sent:])
        return False

    def reset_on_close(self) -> None:
        """From now on closing sends RST."""
        if self.open:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)

    def shut_down(self) -> None:
        """Pass the end of one direction on. The peer may be gone already, which the other direction will notice."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close in both directions. Repeatable."""
        if self.open:
            self.open = False
            self.unsent = b""
            self._reactor.unregister(self.fd, self._mask)
            self._mask = 0
            self.sock.close()
