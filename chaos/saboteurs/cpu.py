"""Burns processor time: `cores` companions, each busy for `share` of every tenth of a second."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

from chaos.saboteurs.life import Orders, fork_companion

_BEAT_S = 0.1


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """Orders: `cores`, a count, and `share` of each, 0 to 1."""
    share = float(orders["share"])
    companions = [fork_companion(lambda: _burn(share)) for _ in range(int(orders["cores"]))]
    try:
        yield
    finally:
        for pid in companions:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _burn(share: float) -> None:
    while True:
        began = time.monotonic()
        while time.monotonic() - began < _BEAT_S * share:
            pass
        time.sleep(max(0.0, began + _BEAT_S - time.monotonic()))
