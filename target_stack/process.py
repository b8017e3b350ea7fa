"""What a process of the stack does to itself: die with its parent, carry a readable name, give up root.

All of it is Linux: `prctl(2)` for the parent-death signal and the subreaper bit.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import setproctitle

_log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Account:
    """A user of the machine to run as."""

    uid: int
    gid: int


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel SIGKILL this process when the thread that forked it ends. Raises OSError.

    Call it first thing after the fork and again after a change of user, which clears it. Given the pid that `parent` is
    expected to have, a parent that died before the call is noticed too, and this process ends at once.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def end_with_parent(parent: int) -> None:
    """Have the kernel SIGTERM this process, for an orderly end, when the thread that forked it ends. Raises OSError."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own, so that none stays behind unreaped. Raises OSError."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_title(title: str) -> None:
    """Show as `brownout: <title>` in ps and top."""
    setproctitle.setproctitle(f"brownout: {title}")


def run_as_child(work: Callable[[], object], *, over: type[BaseException], what: str) -> NoReturn:
    """Be a forked child to the end: it must never unwind into its parent's code. Exits with 0 when the work is done or
    `over` was raised, else with 1 and a line in the log.
    """
    status = 1
    try:
        work()
        status = 0
    except over:
        status = 0
    except BaseException:  # noqa: BLE001  nothing may pass
        _log.exception("%s failed", what)
    finally:
        os._exit(status)


def reap(child: int) -> None:
    """Kill a child of ours and take its status; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def become(account: Account) -> None:
    """Give up root for good. Raises PermissionError when not root."""
    os.setgroups([])
    os.setgid(account.gid)
    os.setuid(account.uid)
