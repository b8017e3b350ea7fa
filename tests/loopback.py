"""Addresses on loopback where nobody listens yet, for servers that cannot be told to choose their own."""

from __future__ import annotations

import socket


def free_port() -> int:
    """The kernel's choice of a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_address() -> str:
    """`host:port`."""
    return f"127.0.0.1:{free_port()}"
