"""Addresses the way Go's net package reads them, with its words for what is wrong; and listening sockets.

An address is `host:port`. No host means every interface, no or zero port means one that the system picks.
"""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass

_BACKLOG = 4096
_GO_ERRORS = {
    errno.EADDRINUSE: "address already in use",
    errno.EADDRNOTAVAIL: "cannot assign requested address",
    errno.EACCES: "permission denied",
}


class AddressError(Exception):
    """An address that cannot be used, in Go's words."""


@dataclass(frozen=True)
class Endpoint:
    """A resolved address. An empty host is every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        return join(self.host, self.port)


def join(host: str, port: int) -> str:
    """host:port, with brackets around a host that has colons itself."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split(address: str) -> tuple[str, str]:
    """Host and port as text. Raises AddressError with the reason in the words of Go's SplitHostPort."""
    host, colon, port = address.rpartition(":")
    if not colon:
        raise AddressError(f"address {address}: missing port in address")
    if address.startswith("["):
        bracket = address.find("]")
        if bracket < 0:
            raise AddressError(f"address {address}: missing ']' in address")
        if bracket + 1 == len(address) or address[bracket + 1] != ":":
            raise AddressError(f"address {address}: missing port in address")
        host, port = address[1:bracket], address[bracket + 2 :]
    elif ":" in host:
        raise AddressError(f"address {address}: too many colons in address")
    if "[" in host or "]" in host:
        raise AddressError(f"address {address}: unexpected '{'[' if '[' in host else ']'}' in address")
    return host, port


def port_number(text: str) -> int:
    """A port from digits or a service name. Raises AddressError."""
    if not text:
        return 0
    if text.isascii() and text.lstrip("+-").isdigit():
        if not 0 <= int(text) <= 65535:
            raise AddressError(f"address {text}: invalid port")
        return int(text)
    try:
        return socket.getservbyname(text, "tcp")
    except OSError:
        raise AddressError(f"lookup tcp/{text}: unknown port") from None


def resolve(address: str) -> Endpoint:
    """The numeric address. A host name is looked up here and now (an API call waits for it). Raises AddressError."""
    if not address:
        return Endpoint("", 0)
    host, port_text = split(address)
    port = port_number(port_text)
    if not host:
        return Endpoint("", port)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressError(f"lookup {host}: no such host") from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)  # Go prefers IPv4 here
    return Endpoint(str(found[0][4][0]), port)


def listen(address: str) -> tuple[socket.socket, str]:
    """A non-blocking listening socket and its real address. Raises AddressError in the words of Go's Listen."""
    try:
        endpoint = resolve(address)
    except AddressError as problem:
        raise AddressError(f"listen tcp: {problem}") from None
    try:
        listener = _bound(endpoint)
    except OSError as problem:
        text = _GO_ERRORS.get(problem.errno or 0) or os.strerror(problem.errno or 0).lower()
        raise AddressError(f"listen tcp {endpoint}: bind: {text}") from None
    host, port = listener.getsockname()[:2]
    return listener, join(host, port)


def _bound(endpoint: Endpoint) -> socket.socket:
    dual = not endpoint.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in endpoint.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((endpoint.host, endpoint.port))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
