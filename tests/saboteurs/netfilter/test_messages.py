"""Messages of the packet queue, byte by byte as the kernel's headers say."""

from __future__ import annotations

import contextlib
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.saboteurs.netfilter import messages
from chaos.saboteurs.netfilter.messages import Packet, Refusal

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the bytes below are those of a little-endian machine"
)


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def packet_message(number: int, hook: int, mark: int | None, data: bytes, size: int | None) -> bytes:
    """As the kernel writes it, with attributes that we do not read among those that we do."""
    body = struct.pack("!BBH", 2, 0, 7) + attribute(1, struct.pack("!IHB", number, 0x0800, hook))
    body += attribute(5, struct.pack("!I", 1)) + (attribute(3, struct.pack("!I", mark)) if mark is not None else b"")
    body += attribute(13, struct.pack("!I", size)) if size is not None else b""
    body += attribute(0x8000 | 10, data)
    whole = struct.pack("=IHHII", 16 + len(body), 3 << 8, 0, 0, 0) + body
    return whole + bytes(-len(whole) % 4)


def test_a_bind_is_these_bytes() -> None:
    wanted = "1c000000 0203 0500 00000000 00000000 00 00 0007 0800 0100 01 00 0000"
    assert bytes.fromhex(wanted) == messages.bind(7)


def test_a_drop_is_these_bytes() -> None:
    wanted = "20000000 0103 0100 00000000 00000000 00 00 0007 0c00 0200 00000000 0000002a"
    assert bytes.fromhex(wanted) == messages.verdict(7, 42, messages.DROP)


def test_a_packet_that_goes_on_changed_has_its_mark_and_its_bytes_padded() -> None:
    head = "30000000 0103 0100 00000000 00000000 00 00 0007"
    body = "0c00 0200 00000004 0000002a 0800 0300 00100000 0700 0a00 61626300"
    assert bytes.fromhex(head + body) == messages.verdict(7, 42, messages.REPEAT, 0x100000, b"abc")


@given(
    number=st.integers(0, 2**32 - 1),
    hook=st.integers(0, 4),
    mark=st.none() | st.integers(0, 2**32 - 1),
    data=st.binary(max_size=100),
    size=st.none() | st.integers(0, 2**32 - 1),
)
def test_a_packet_is_read_whatever_it_holds(
    number: int, hook: int, mark: int | None, data: bytes, size: int | None
) -> None:
    wanted = Packet(number, hook, mark or 0, data, len(data) if size is None else size)
    two = packet_message(number, hook, mark, data, size) * 2
    assert [wanted, wanted] == list(messages.read(two))


def test_a_refusal_bears_the_number_of_its_reason() -> None:
    no = struct.pack("=IHHIIi", 36, 2, 0, 0, 0, -1) + bytes(16)
    assert [Refusal(1)] == list(messages.read(no))


@given(st.binary(max_size=200))
def test_bytes_that_are_no_messages_end(received: bytes) -> None:
    """Lengths that lie never make it read for ever."""
    with contextlib.suppress(KeyError, struct.error):
        list(messages.read(received))


@pytest.mark.parametrize(
    ("head", "ports"), [(b"\x45" + bytes(19), b"\x01\x02\x03\x04"), (b"\x46" + bytes(23), b"abcd")]
)
def test_the_ports_stand_behind_a_head_of_any_length(head: bytes, ports: bytes) -> None:
    assert ports == Packet(1, 1, 0, head + ports + bytes(16), 40).flow


def test_the_ports_of_ipv6_stand_behind_forty_bytes() -> None:
    assert b"abcd" == Packet(1, 1, 0, b"\x60" + bytes(39) + b"abcd", 60).flow
