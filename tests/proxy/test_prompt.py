"""Waking up in time: the proxy goes ahead of ordinary processes where it may, unless it is told to be fair."""

from __future__ import annotations

import os
from pathlib import Path

from tests.proxy.conftest import Start


def is_ahead(pid: int) -> bool:
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR


def allowed() -> bool:
    """Whether a child of ours may go ahead of others."""
    child = os.fork()
    if not child:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_the_proxy_goes_ahead_where_it_may_and_is_fair_when_told_so(start_proxy: Start) -> None:
    default, fair = start_proxy(), start_proxy("--fair")
    assert allowed() == is_ahead(default.pid)
    assert not is_ahead(fair.pid)
    assert "1" == Path(f"/proc/{fair.pid}/timerslack_ns").read_text().strip()
