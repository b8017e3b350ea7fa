"""Makes a bad link of the network before one port: packets that a rule puts into our queue are harmed on their way.

The rule is not ours. Without us it lets everything pass (`--queue-bypass`), so our death ends the harm.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from chaos.saboteurs.life import HarmFailed, Orders
from chaos.saboteurs.netfilter.links import NEEDS_ALL_BYTES, link_of
from chaos.saboteurs.netfilter.queue import Queue, sender
from chaos.saboteurs.netfilter.traffic import Traffic, flowing, wake_in_time

_CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """Orders: the name of a `link` with its settings `given`; `seed`; `mark`, the bit of packets that have been here;
    `edges`, each with `queue`, a number, and `inside`, a process in whose network that is, or None for our own.
    """
    whole, mark = orders["link"] in NEEDS_ALL_BYTES, int(orders["mark"])
    wake_in_time()
    with contextlib.ExitStack() as all_edges:
        for number, edge in enumerate(orders["edges"]):
            link = link_of(orders["link"], orders["given"], int(orders["seed"]) + number)
            with network_of(edge["inside"]):
                queue = all_edges.enter_context(contextlib.closing(Queue(int(edge["queue"]), mark, whole=whole)))
                resend = sender(mark)
            all_edges.enter_context(flowing(Traffic(queue, link, resend)))
        yield


@contextlib.contextmanager
def network_of(pid: int | None) -> Iterator[None]:
    """What is opened here is in the network namespace of that process (setns(2)); None is ours. Raises HarmFailed, and
    OSError.
    """
    if pid is None:
        yield
        return
    with Path("/proc/thread-self/ns/net").open("rb") as ours, Path(f"/proc/{pid}/ns/net").open("rb") as theirs:
        _enter(theirs.fileno(), f"the network of process {pid} cannot be entered")
        try:
            yield
        finally:
            _enter(ours.fileno(), "there is no way back into our own network")


def _enter(namespace: int, trouble: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET):
        raise HarmFailed(f"{trouble}: {os.strerror(ctypes.get_errno())}")
