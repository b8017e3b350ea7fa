"""Waking up in time: the proxy goes before ordinary processes where it may, while toxics wait and only then."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.proxy.conftest import Start
from tests.proxy.peers import Admin, Upstream


def goes_first(pid: int) -> bool:
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR


def allowed() -> bool:
    """Whether a child of ours may go first."""
    child = os.fork()
    if not child:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def becomes(pid: int, wanted: bool) -> bool:
    """Whether the process soon goes first, or is soon one of many."""
    give_up = time.monotonic() + 5
    while time.monotonic() < give_up and goes_first(pid) is not wanted:
        time.sleep(0.005)
    return goes_first(pid) is wanted


def test_the_proxy_goes_first_while_a_toxic_waits_where_it_may(admin: Admin, upstream: Upstream) -> None:
    edge = admin.proxy(upstream.address)
    assert becomes(admin.pid, False)
    toxic = edge.add("latency", latency=1)
    assert becomes(admin.pid, allowed())
    edge.remove(toxic)
    assert becomes(admin.pid, False)
    edge.add("latency", latency=1)
    edge.delete()
    assert becomes(admin.pid, False)


def test_a_proxy_that_is_told_to_be_fair_never_does(start_proxy: Start, upstream: Upstream) -> None:
    fair = start_proxy("--fair")
    edge = fair.proxy(upstream.address)
    edge.add("latency", latency=1)
    with edge.connect() as client:
        client.ask()
    assert not goes_first(fair.pid)
    assert "1" == Path(f"/proc/{fair.pid}/timerslack_ns").read_text().strip()
