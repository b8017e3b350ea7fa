"""Stands in for a fault proxy that others run: lives while it answers, and takes our edges out of it at the end.

The supervisor knows processes. With this one in the proxy's place a foreign server that is restarted, and has then
forgotten our edges, looks like a proxy that died: the next keeper is started, and the edges are put there anew.

    python -m target_stack.proxy_keeper HOST:PORT EDGE...
"""

from __future__ import annotations

import contextlib
import http.client
import signal
import sys
import threading
from collections.abc import Sequence
from urllib.parse import quote

_EVERY_S = 0.5
_ANSWER_S = 2.0
_MISSES = 3  # in a row: a busy server is not a dead one


def _call(address: str, method: str, path: str) -> int:
    """The status. Raises OSError and HTTPException."""
    connection = http.client.HTTPConnection(address, timeout=_ANSWER_S)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()


def _answers(address: str) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return _call(address, "GET", "/version") == 200
    return False


def keep(address: str, edges: Sequence[str], over: threading.Event) -> int:
    """0 when told to end, 1 when the server is gone."""
    missed = 0
    while not over.wait(_EVERY_S):
        missed = 0 if _answers(address) else missed + 1
        if missed == _MISSES:
            sys.stderr.write(f"the proxy at {address} does not answer\n")
            return 1
    for edge in edges:
        with contextlib.suppress(OSError, http.client.HTTPException):
            _call(address, "DELETE", f"/proxies/{quote(edge, safe='')}")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Keep until SIGTERM."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    return keep(arguments[0], arguments[1:], over)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
