"""A packet queue of the kernel, ours for as long as this object is open."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator

from chaos.saboteurs.life import HarmFailed
from chaos.saboteurs.netfilter import messages
from chaos.saboteurs.netfilter.messages import Packet, Refusal

_NETFILTER = 12
_SOL_NETLINK, _NO_ENOBUFS = 270, 5
_SO_RCVBUFFORCE, _SO_MARK = 33, 36
_BUFFER = 8 * 1024 * 1024
_LARGEST = 128 * 1024
_MOST_WAITING = 65_536
_HEAD = 128  # bytes: the headers, with all options
_AT_ONCE = 64
_ANSWER_S = 1.0


class Queue:
    """Packets that a rule hands over, and what becomes of them. `mark` is the bit of those that have been here."""

    def __init__(self, number: int, mark: int, *, whole: bool) -> None:
        """Take the queue; packets are handed over whole or only their heads. Raises HarmFailed."""
        self._number, self._mark = number, mark
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
        self._socket.setsockopt(_SOL_NETLINK, _NO_ENOBUFS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self._socket.settimeout(_ANSWER_S)
        self._ask(messages.bind(number))
        self._ask(messages.set_up(number, _LARGEST if whole else _HEAD, _MOST_WAITING))
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Readable when packets wait."""
        return self._socket.fileno()

    def packets(self) -> Iterator[Packet]:
        """Those that have come, a limited number at once."""
        for _ in range(_AT_ONCE):
            try:
                received = self._socket.recv(_LARGEST + 4096)
            except BlockingIOError:
                return
            yield from (each for each in messages.read(received) if isinstance(each, Packet))

    def let_pass(self, packet: Packet, data: bytes | None = None) -> None:
        """On it goes, perhaps with other bytes."""
        marked = packet.mark | self._mark
        self._socket.send(messages.verdict(self._number, packet.id, messages.REPEAT, marked, data))

    def drop(self, packet: Packet) -> None:
        """It never was."""
        self._socket.send(messages.verdict(self._number, packet.id, messages.DROP))

    def close(self) -> None:
        """Give the queue back; the kernel drops what still waits in it."""
        self._socket.close()

    def _ask(self, request: bytes) -> None:
        self._socket.send(request)
        for answer in messages.read(self._socket.recv(_LARGEST)):
            if isinstance(answer, Refusal) and answer.number:
                raise HarmFailed(f"the kernel refuses packet queue {self._number}: {os.strerror(answer.number)}")


def sender(mark: int) -> Callable[[bytes], None]:
    """A way to send whole packets of our own, which bear the mark. Raises OSError."""
    sockets = {
        version: socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
        for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6))
    }
    for each in sockets.values():
        each.setsockopt(socket.SOL_SOCKET, _SO_MARK, mark)

    def send(data: bytes) -> None:
        version = data[0] >> 4
        to = data[16:20] if version == 4 else data[24:40]
        sockets[version].sendto(data, (socket.inet_ntop(sockets[version].family, to), 0))

    return send
