"""Drawing ports that are free, below the range from which the kernel takes ports for outgoing connections."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Container

FIRST_PORT, LAST_PORT = 20_000, 32_000


class NoFreePort(Exception):
    """So many draws found nothing: the machine has run out of ports, or refuses every bind."""


def is_free(port: int) -> bool:
    """Whether a server on loopback could listen there now; connections in TIME_WAIT are no hindrance."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def draw_port(dice: random.Random, taken: Container[int], free: Callable[[int], bool] = is_free) -> int:
    """A free port that is not in `taken`. Raises NoFreePort."""
    for _ in range(1000):
        port = dice.randint(FIRST_PORT, LAST_PORT)
        if port not in taken and free(port):
            return port
    raise NoFreePort(f"no free port found between {FIRST_PORT} and {LAST_PORT} in 1000 draws")
