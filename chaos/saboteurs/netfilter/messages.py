"""How one talks with the kernel's packet queue: bytes of nfnetlink_queue messages, and nothing else.

    kernel ──► PACKET (id, hook, mark, bytes) ──► us ──► VERDICT (id, what becomes of it, mark, other bytes) ──► kernel

Facts: linux/netlink.h, linux/netfilter/nfnetlink.h and nfnetlink_queue.h. Numbers of netfilter are big-endian, those of
netlink itself are the machine's; every attribute begins on a multiple of four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

LOCAL_IN, POST_ROUTING = 1, 4
"""Hooks at which packets are taken: on their way into a socket of this namespace, and on their way out."""
DROP, REPEAT = 0, 4
"""Verdicts. REPEAT sends the packet through the rules of the hook again, so that other queues get it too."""

_QUEUE = 3 << 8
_PACKET, _VERDICT, _CONFIG = _QUEUE, _QUEUE | 1, _QUEUE | 2
_ERROR = 2
_REQUEST, _ACK = 1, 4
_CFG_CMD, _CFG_PARAMS, _CFG_MAXLEN, _CFG_MASK, _CFG_FLAGS = 1, 2, 3, 4, 5
_BIND, _COPY_PACKET, _FAIL_OPEN = 1, 2, 1
_PACKET_HDR, _VERDICT_HDR, _MARK, _PAYLOAD, _CAP_LEN = 1, 2, 3, 10, 13

_HEADER = struct.Struct("=IHHII")
_FAMILY = struct.Struct("!BBH")
_ATTRIBUTE = struct.Struct("=HH")
_BODY = _HEADER.size + _FAMILY.size
_TYPE = 0x3FFF  # the two bits above say how it is encoded
_ID = struct.Struct("!IHB")
_WORD = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet that waits in the kernel. `data` are its first bytes, `size` is how many it has; both from IP on."""

    id: int
    hook: int
    mark: int
    data: bytes
    size: int

    @property
    def flow(self) -> bytes:
        """The two ports: the same for all packets of one connection that go one way (IPv6 without extensions)."""
        head = 40 if self.data[0] >> 4 == 6 else (self.data[0] & 15) * 4
        return self.data[head : head + 4]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The kernel's answer to a request; `number` is an errno, 0 for a yes."""

    number: int


def bind(queue: int) -> bytes:
    """Make the queue ours. Answered with EPERM when it is somebody's, or when we are not root."""
    return _config(queue, _attribute(_CFG_CMD, struct.pack("!BBH", _BIND, 0, 0)))


def set_up(queue: int, copy: int, most: int) -> bytes:
    """Hand over the first `copy` bytes of packets. When `most` wait, further ones pass untouched."""
    return _config(
        queue,
        _attribute(_CFG_PARAMS, struct.pack("!IB", copy, _COPY_PACKET)),
        _attribute(_CFG_MAXLEN, _WORD.pack(most)),
        _attribute(_CFG_MASK, _WORD.pack(_FAIL_OPEN)),
        _attribute(_CFG_FLAGS, _WORD.pack(_FAIL_OPEN)),
    )


def verdict(queue: int, packet: int, what: int, mark: int | None = None, data: bytes | None = None) -> bytes:
    """What becomes of a packet, with another mark and other bytes if they are given. Not answered unless it fails."""
    attributes = [_attribute(_VERDICT_HDR, struct.pack("!II", what, packet))]
    if mark is not None:
        attributes.append(_attribute(_MARK, _WORD.pack(mark)))
    if data is not None:
        attributes.append(_attribute(_PAYLOAD, data))
    return _message(_VERDICT, _REQUEST, queue, attributes)


def read(received: bytes) -> Iterator[Packet | Refusal]:
    """All messages in what was received at once."""
    at = 0
    while at + _HEADER.size <= len(received):
        length, kind, _, _, _ = _HEADER.unpack_from(received, at)
        if kind == _PACKET:
            yield _packet(received[at + _BODY : at + length])
        elif kind == _ERROR:
            yield Refusal(-struct.unpack_from("=i", received, at + _HEADER.size)[0])
        at += max(_HEADER.size, -length % 4 + length)


def _packet(body: bytes) -> Packet:
    found = dict(_attributes(body))
    number, _, hook = _ID.unpack_from(found[_PACKET_HDR])
    data = found.get(_PAYLOAD, b"")
    size = _WORD.unpack(found[_CAP_LEN])[0] if _CAP_LEN in found else len(data)
    return Packet(number, hook, _WORD.unpack(found[_MARK])[0] if _MARK in found else 0, data, size)


def _attributes(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        yield kind & _TYPE, body[at + _ATTRIBUTE.size : at + length]
        at += max(_ATTRIBUTE.size, -length % 4 + length)


def _config(queue: int, *attributes: bytes) -> bytes:
    return _message(_CONFIG, _REQUEST | _ACK, queue, list(attributes))


def _message(kind: int, flags: int, queue: int, attributes: list[bytes]) -> bytes:
    body = _FAMILY.pack(0, 0, queue) + b"".join(attributes)
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body


def _attribute(kind: int, data: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), kind) + data + bytes(-len(data) % 4)
