"""A target ends by itself and says that all went well: exit status 0, which a supervisor may take for "done".

Restart policies like `on-failure` leave such a process dead. So it stays dead here until the revert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.sent_away import SentAway
from chaos.faults.process_kill import seen_dead
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class ProcessExitZero(SentAway):
    """Ends a target's process with status 0."""

    kind: ClassVar[str] = "process_exit_zero"
    summary: ClassVar[str] = "The target exits with status 0 and is taken for done: nobody starts it until the revert."
    observer: ClassVar[str] = "/proc no longer has the process, its address refuses, and its parent was told status 0"

    grace: Duration = setting(
        "how long it may take to leave; one that has to be killed then has not exited with 0, and proves nothing",
        default=Duration(10),
        least=0.1,
        most=600,
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process, and a supervisor that leaves it dead."""
        lifeless = (f"{t.name}: the inventory lists no process to end" for t in targets if not t.pids)
        return (*lifeless, *supervisor.without(targets, "leave it dead and start it again"))

    async def seen_away(self, grip: Grip, host: Host) -> Sighting:
        """The process is gone, its address refuses, and its end was the end of a success."""
        dead = await seen_dead(grip, host, refused=True)
        record = await supervisor.look(grip.supervisor, grip.name, host) if dead.seen and grip.supervisor else None
        if record is None:
            return Sighting(seen=False, what=dead.what)
        status = record.get("last_exit")
        told = "nobody says how it ended" if status is None else f"it ended with status {status}"
        return Sighting(status == 0, f"{dead.what}, {told}")
