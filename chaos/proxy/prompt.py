"""What a process can do to wake up in time: on a busy machine, waiting for a processor is most of a delay's error.

Measured on two cores with three busy loops beside it: an ordinary process is woken 1.6 ms late on the mean, one in the
round-robin class 1 us. Under a stream of work the class costs more than it gives: who comes first also pushes those
aside that it works for (a quarter fewer requests per second). So it is entered only to wait, see reactor.py.
"""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

_SLACK = Path("/proc/self/timerslack_ns")
_BY_TURNS = os.SCHED_RR | os.SCHED_RESET_ON_FORK


def be_prompt() -> None:
    """Wake up as near to the asked time as an ordinary process may, and never pause to look through modules."""
    with contextlib.suppress(OSError):  # the default slack is 50 us
        _SLACK.write_text("1", encoding="ascii")
    gc.collect()
    gc.freeze()


class Precedence:
    """Whether this thread goes before all ordinary ones. Takes root, CAP_SYS_NICE or an RLIMIT_RTPRIO, else nothing
    happens. The kernel keeps 5 % of a processor for the others, whatever goes wrong.
    """

    def __init__(self, *, wanted: bool = True) -> None:
        self.taken = False
        self._possible = wanted
        self._lowest = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        self._ordinary = os.sched_param(0)

    def take(self) -> None:
        """Go first. Repeatable."""
        if self._possible and not self.taken:
            try:
                os.sched_setscheduler(0, _BY_TURNS, self._lowest)
            except OSError:
                self._possible = False
            else:
                self.taken = True

    def give_back(self) -> None:
        """Be one of many. Repeatable."""
        if self.taken:
            os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, self._ordinary)
            self.taken = False
