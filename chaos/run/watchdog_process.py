"""How the harness starts its watchdog, sees that it lives, and lets it go.

Plain pipes and `Popen`, not the event loop's subprocesses: those kill their child when the loop ends, and this child
must outlive everything.
"""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import chaos

READY_WITHIN_S = 10.0
LEAVES_WITHIN_S = 2.0


class WatchdogFailed(Exception):
    """The watchdog did not begin to watch; nothing may be injected without it."""


@dataclass
class WatchdogProcess:
    """The watchdog of one run, in a session of its own: what is sent to the harness's group does not reach it."""

    leases: Path
    run: str
    log: Path
    _process: subprocess.Popen[bytes] | None = None

    async def start(self, within_s: float = READY_WITHIN_S) -> None:
        """Start it and wait until it watches. Raises WatchdogFailed."""
        process = self._launch()
        if not await asyncio.to_thread(_is_ready, process, within_s):
            process.kill()
            _, words = process.communicate()
            told = words.decode(errors="replace").strip()[-2000:] or "it said nothing"
            raise WatchdogFailed(f"the watchdog did not begin to watch within {within_s:g}s: {told}")

    def _launch(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "chaos.run.watchdog"),
                *("--leases", str(self.leases.absolute()), "--run", self.run, "--log", str(self.log.absolute())),
            ],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": _search_path()},
        )
        return self._process

    @property
    def pid(self) -> int | None:
        """Of the process, once it is started."""
        return self._process.pid if self._process else None

    def alive(self) -> bool:
        """Whether it is watching."""
        return self._process is not None and self._process.poll() is None

    async def done(self, within_s: float = LEAVES_WITHIN_S) -> int | None:
        """Say that the run is over and wait for it to leave; its exit code, None when it still guards leases."""
        process = self._process
        if process is None:
            return None
        _say_done(process)
        try:
            return await asyncio.to_thread(process.wait, within_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def _say_done(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is None or process.stdin.closed:
        return
    try:
        process.stdin.write(b"done\n")
        process.stdin.close()
    except BrokenPipeError:  # it has left already
        return


def _is_ready(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Wait for its first line; False when it ended or took too long."""
    if process.stdout is None:
        return False
    pipe, said, give_up = process.stdout.fileno(), b"", time.monotonic() + within_s
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while b"\n" not in said:
        left_ms = max(0.0, give_up - time.monotonic()) * 1000
        chunk = os.read(pipe, 64) if poll.poll(left_ms) else b""
        if not chunk:
            return False
        said += chunk
    return said.strip() == b"ready"


def _search_path() -> str:
    """Lets the child find this very package, installed or not."""
    (package,) = chaos.__path__
    return os.pathsep.join([str(Path(package).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
