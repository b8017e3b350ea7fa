"""The bundled stack as local processes: bring it up, find it, take it down.

The harness knows the stack only from outside: a command line, a state folder with `inventory.json`, a Unix control
socket.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.inventory import Inventory
from chaos.ports import Clock, Host, ProcessId

READY_WITHIN_S = 30.0
GONE_WITHIN_S = 15.0
_POLL_S = 0.05
_LONGEST_SOCKET_PATH = 107  # `sun_path` holds 108 bytes with the closing zero (unix(7))
OWN_PROXY = "brownout"
PROXY_HELP = (
    "the fault proxy: brownout (default), toxiproxy (a toxiproxy-server on PATH is started), "
    "or toxiproxy://HOST:PORT (one that runs on this machine)"
)
_TOXIPROXY = "toxiproxy-server"
_PROXY_COMMAND = "{python} -m chaos.proxy --host 127.0.0.1 --port {{port}} --token-file {{token_file}}"


class StackTrouble(Exception):
    """The stack could not be brought up, found or taken down; the message says what to look at.

    `exit_code` is 64 when what was asked of it was wrong, else 70.
    """

    def __init__(self, message: str, exit_code: int = 70) -> None:
        """Keep the code beside the message."""
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class LocalStack:
    """One stack by its state folder."""

    folder: Path

    @property
    def lock(self) -> Path:
        """The lock file of runs on this stack."""
        return self.folder / "run.lock"

    @property
    def socket(self) -> Path:
        """The control socket."""
        return self.folder / "control.sock"

    def record(self) -> dict[str, Any] | None:
        """`inventory.json` as it is on disk, or None when there is no stack here."""
        try:
            found = json.loads((self.folder / "inventory.json").read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def supervisor(self, host: Host) -> ProcessId | None:
        """The live supervisor of this stack; it keeps its pid file locked, so an unlocked one names a stranger."""
        try:
            with (self.folder / "supervisor.pid").open() as file:
                pid = int(file.read().split()[0]) if _is_locked(file.fileno()) else None
        except (OSError, ValueError, IndexError):
            return None
        return None if pid is None else host.processes.identify(pid)

    async def inventory(self, host: Host) -> Inventory | None:
        """What is running now, asked from the supervisor itself; None when none answers."""
        reply = await host.http.call("GET", f"unix://{self.socket}:/status", timeout_s=2.0)
        if reply.status != 200:
            return None
        return Inventory.from_json(json.loads(reply.body))


def start(
    stack: LocalStack, profile: str, weaknesses: Iterable[str], *, dies_with_us: bool, proxy: str = OWN_PROXY
) -> subprocess.Popen[bytes]:
    """Start the supervisor in a session of its own; its messages go to `supervisor.log`. Raises StackTrouble.

    `proxy` is what stands before every target: ours, a Toxiproxy server that we start, or one that runs already.
    """
    length = len(os.fsencode(stack.socket))
    if length > _LONGEST_SOCKET_PATH:
        raise StackTrouble(
            f"the path of the control socket, {stack.socket}, has {length} bytes, and Linux allows "
            f"{_LONGEST_SOCKET_PATH}; set BROWNOUT_STATE to a folder with a shorter path",
            64,
        )
    stack.folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "target_stack", "--state-dir", str(stack.folder), "--profile", profile]
    for name in weaknesses:
        command += ["--weakness", name]
    command += _proxy_flags(proxy)
    if dies_with_us:
        command += ["--die-with", str(os.getpid())]
    with (stack.folder / "supervisor.log").open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _proxy_flags(proxy: str) -> list[str]:
    """How the supervisor is told. Raises StackTrouble for what cannot be had."""
    if proxy == OWN_PROXY:
        return ["--proxy-command", _PROXY_COMMAND.format(python=sys.executable)]
    if proxy == "toxiproxy":
        if shutil.which(_TOXIPROXY) is None:
            where = "`make tools` builds one in build/tools/toxiproxy"
            raise StackTrouble(f"--proxy toxiproxy: there is no {_TOXIPROXY} on PATH; {where}", 64)
        return ["--proxy-command", f"{_TOXIPROXY} -host 127.0.0.1 -port {{port}}"]
    scheme, _, address = proxy.partition("://")
    port = address.rpartition(":")[2]
    if scheme != "toxiproxy" or not port.isdecimal():
        raise StackTrouble(f"--proxy {proxy}: give {OWN_PROXY}, toxiproxy or toxiproxy://HOST:PORT", 64)
    return ["--proxy-at", address]


async def wait_ready(stack: LocalStack, process: subprocess.Popen[bytes] | None, host: Host) -> Inventory:
    """Return the inventory once the whole stack serves. Raises StackTrouble when it takes too long, or when `process`,
    its supervisor if we started it, dies.
    """
    give_up = host.clock.now() + READY_WITHIN_S
    while host.clock.now() < give_up:
        if process is not None and process.poll() is not None:
            code = 64 if process.returncode == 64 else 70
            raise StackTrouble(f"the stack did not come up: {_tail(stack)}", code)
        if (stack.folder / "inventory.json").exists():
            inventory = await stack.inventory(host)
            if inventory is not None and inventory.ready:
                return inventory
        await _pause(host.clock)
    raise StackTrouble(f"the stack was not ready within {READY_WITHIN_S:.0f}s: {_tail(stack)}")


async def stop(stack: LocalStack, host: Host) -> bool:
    """Take the stack down and wait until its supervisor is gone. False when there was none. Raises StackTrouble."""
    supervisor = stack.supervisor(host)
    if supervisor is None:
        return False
    host.processes.signal(supervisor, signal.SIGTERM)
    give_up = host.clock.now() + GONE_WITHIN_S
    while host.processes.state(supervisor) is not None:
        if host.clock.now() > give_up:
            pid = supervisor.pid
            raise StackTrouble(f"the supervisor (pid {pid}) does not end; end it with `kill -9 {pid}`")
        await _pause(host.clock)
    return True


def forget(stack: LocalStack) -> None:
    """Remove the state folder of a stack that is down."""
    shutil.rmtree(stack.folder, ignore_errors=True)


def _is_locked(file: int) -> bool:
    """Whether another process holds the lock; ours, if there was none, goes with the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _tail(stack: LocalStack) -> str:
    try:
        text = (stack.folder / "supervisor.log").read_text(errors="replace").strip()
    except OSError:
        text = ""
    return text[-600:] or f"see {stack.folder}/supervisor.log"


async def _pause(clock: Clock) -> None:
    await clock.sleep_until(clock.now() + _POLL_S)


def weaknesses() -> list[dict[str, str]]:
    """The mistakes that can be planted, as the stack itself lists them. Raises StackTrouble."""
    command = [sys.executable, "-m", "target_stack", "--list-weaknesses"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        listed, trouble = process.communicate(timeout=20)
    try:
        return list(json.loads(listed))
    except ValueError as error:
        raise StackTrouble(f"the stack does not list its weaknesses: {trouble.strip() or error}") from error
