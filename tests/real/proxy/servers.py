"""Programs that `make tools` installs, and proxy servers of either make."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "build" / "tools"


def tool(*path: str) -> Path:
    """A program or folder below build/tools. Raises AssertionError."""
    found = TOOLS.joinpath(*path)
    assert found.exists(), f"there is no {found.relative_to(ROOT)}; run `make tools`"
    return found


@contextlib.contextmanager
def running(*command: str) -> Iterator[str]:
    """A proxy server of either make; its admin address, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ends = subprocess.DEVNULL
    with subprocess.Popen(
        [*command, "-host", "127.0.0.1", "-port", str(port)], cwd=ROOT, stdout=ends, stderr=ends
    ) as process:
        try:
            assert any(_answers(port) for _ in range(250)), f"{command} does not answer"
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    with (
        contextlib.suppress(OSError, http.client.HTTPException),
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=1)) as connection,
    ):
        connection.request("GET", "/version")
        connection.getresponse().read()
        return True
    time.sleep(0.02)
    return False


def server_command(make: str) -> list[str]:
    """How one of the two is started."""
    return [sys.executable, "-m", "chaos.proxy"] if make == "brownout" else [str(tool("toxiproxy", "toxiproxy-server"))]
