"""What the kernel counts of TCP: on one connection (TCP_INFO, tcp(7)), and in a whole network (/proc/net).

Offsets are those of `struct tcp_info` in linux/tcp.h; the struct only ever grows at its end.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from chaos.ports import Exchanged, Segments

_MOST = 256
_RTT_US, _RESENT, _RECEIVED, _SENT, _COPIED, _REORDERED, _EARLY = 68, 100, 152, 156, 216, 220, 224
_ESTABLISHED = 1
_COUNTERS = ("snmp", "netstat")
_GARBLED, _AGAIN, _OURS_AGAIN = "Tcp.InCsumErrors", "TcpExt.TCPDSACKOldSent", "Tcp.RetransSegs"


def rtt_of(connection: socket.socket) -> float | None:
    """The round trip that TCP has measured, in seconds; None where there is no connection."""
    info = _info(connection)
    return _word(info, _RTT_US) / 1e6 if info[:1] == bytes([_ESTABLISHED]) else None


def counters() -> Mapping[str, int]:
    """All of this thread's network, as `Tcp.InCsumErrors`."""
    found: dict[str, int] = {}
    for page in _COUNTERS:
        lines = Path(f"/proc/thread-self/net/{page}").read_text(encoding="ascii").splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            group = names.partition(":")[0]
            found.update((f"{group}.{k}", int(v)) for k, v in zip(names.split()[1:], values.split()[1:], strict=True))
    return found


def segments(
    connection: socket.socket, talk: Exchanged, rtt_s: float | None, before: Mapping[str, int], after: Mapping[str, int]
) -> Segments:
    """All that was counted of a talk and meanwhile. What we resent is no harm's copy when it comes twice."""
    info = _info(connection)
    more = {name: after.get(name, 0) - before.get(name, 0) for name in (_GARBLED, _AGAIN, _OURS_AGAIN)}
    resent, copied = _word(info, _RESENT), _word(info, _COPIED)
    return Segments(
        talk=talk,
        rtt_s=rtt_s,
        sent=_word(info, _SENT),
        resent=max(0, resent - copied),
        copied=max(0, copied - resent),
        reordered=_word(info, _REORDERED),
        received=_word(info, _RECEIVED),
        early=_word(info, _EARLY),
        garbled=more[_GARBLED],
        again=max(0, more[_AGAIN] - more[_OURS_AGAIN]),
    )


def _info(connection: socket.socket) -> bytes:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MOST)


def _word(info: bytes, at: int) -> int:
    """0 on a kernel too old to have it."""
    return int(struct.unpack_from("=I", info, at)[0]) if at + 4 <= len(info) else 0
