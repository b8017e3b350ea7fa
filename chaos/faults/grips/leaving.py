"""Asking processes to leave in good order, and ending those that do not: what a rollout or a node's drain does."""

from __future__ import annotations

import signal as signals

from chaos.faults.fault import CannotInject
from chaos.faults.grips.grip import Grip, alive, family, numbers
from chaos.ports import Host, Wire

_LOOK_EVERY_S = 0.05
_ORDERLY: dict[Wire, int] = {"postgres": signals.SIGINT}
"""SIGTERM but where it means something else: PostgreSQL would wait for every client to leave (its manual, 18.5)."""


async def leave(grips: tuple[Grip, ...], grace_s: float, host: Host) -> None:
    """Ask the first process of each, wait up to `grace_s` for all to be gone, then SIGKILL what is left. Raises
    CannotInject when one had left by itself.
    """
    for grip in grips:
        if not host.processes.signal(grip.processes[0], _ORDERLY.get(grip.wire, signals.SIGTERM)):
            raise CannotInject(
                f"{grip.name}: process {numbers(grip.processes)} went away by itself before the fault began; "
                "wait until `brownout status` shows it ready"
            )
    give_up = host.clock.now() + grace_s
    everybody = tuple(process for grip in grips for process in grip.processes)
    while alive(everybody, host.processes) and host.clock.now() < give_up:
        await host.clock.sleep_until(host.clock.now() + _LOOK_EVERY_S)
    for process in family(alive(everybody, host.processes), host.processes):
        host.processes.signal(process, signals.SIGKILL)


def successor(grip: Grip, pids: tuple[int, ...], host: Host) -> bool:
    """Whether a process that is none of the grip's is at its place."""
    found = host.processes.identify(pids[0]) if pids else None
    return found is not None and found not in grip.processes
