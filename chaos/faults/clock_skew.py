"""A target's clock is wrong, and everybody else's is right: it has jumped, or it runs too fast or too slow.

Only what tells the date is moved (CLOCK_REALTIME, gettimeofday, time); the monotonic clock goes on as it did. So a
lease, a deadline or a lifetime that is measured by the date breaks, and one that is not does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import RevertFailed, Sighting, Undo
from chaos.faults.grips import told_time
from chaos.faults.grips.grip import Grip, grips_in, listed_processes
from chaos.faults.grips.needs import TRACE, X86_64
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting
from chaos.units import Duration, Ratio

_TEN_YEARS_S = 10 * 365 * 86_400


@dataclass(frozen=True)
class ClockSkew(SaboteurFault):
    """Moves the clock of processes."""

    kind: ClassVar[str] = "clock_skew"
    program: ClassVar[str] = "clock"
    summary: ClassVar[str] = (
        "The clock of one target tells a wrong time, or runs too fast or too slow; all others are right."
    )
    fidelity: ClassVar[str] = (
        "the clock as the real process reads it through the vDSO, which is how programs do; what the kernel dates "
        "itself (files, absolute timers) keeps the right time, and so does a process that is started anew. A read "
        "takes about a microsecond instead of a tenth of one"
    )
    observer: ClassVar[str] = "the target tells its time over a connection of ours, beside our own clock"
    needs: ClassVar[tuple[Need, ...]] = (X86_64, TRACE)

    offset: Duration = setting("how wrong the clock is from the start", default=Duration(300), most=_TEN_YEARS_S)
    direction: Literal["ahead", "behind"] = setting("ahead is later than it is", default="ahead")
    drift: Ratio = setting("how much more it gains (ahead) or loses (behind) each second", default=Ratio(0))

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must have processes and tell the time more finely than it is wrong."""
        found = [f"{t.name}: the inventory lists no process whose clock could be moved" for t in targets if not t.pids]
        found += [
            f"{t.name}: it tells its time to {told_time.PRECISION_S[t.wire]:g} s; choose a longer offset or a drift"
            for t in targets
            if not self.drift and self.offset < 2 * told_time.PRECISION_S[t.wire]
        ]
        return tuple(found)

    async def expected(self, targets: tuple[Target, ...], host: Host) -> Mapping[str, Any]:
        """Whose clock, and where it goes. Raises CannotInject."""
        sign = 1 if self.direction == "ahead" else -1
        grips = [Grip.of(target, await listed_processes(target, host)).to_json() for target in targets]
        return {"targets": grips, "ahead_s": sign * float(self.offset), "drift": sign * float(self.drift)}

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """All that the undo holds, as the saboteur reads it."""
        processes = [[each.pid, each.start_ticks] for grip in grips_in(undo) for each in grip.processes]
        return {"processes": processes, **{key: undo[key] for key in ("mark", "ahead_s", "drift")}}

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """Every target's clock is wrong in the right direction."""
        return await every_one(_look(grip, undo, host, harmed=True) for grip in grips_in(undo))

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """Every target's clock is right."""
        return await every_one(_look(grip, undo, host, harmed=False) for grip in grips_in(undo))

    async def clean(self, undo: Undo, host: Host) -> None:
        """What was changed lies in the processes' own memory, where it outlives the saboteur. Raises RevertFailed."""
        ran = await host.programs.mend(self.program, undo["mark"])
        if ran.status != 0:
            names = " and ".join(grip.name for grip in grips_in(undo))
            why = ran.errors.strip() or f"the mending ended with status {ran.status}"
            raise RevertFailed(f"{names}: its clock is still wrong: {why}; by hand: restart it, nothing is on disk")


async def _look(grip: Grip, undo: Undo, host: Host, *, harmed: bool) -> Sighting:
    try:
        ahead_s = await told_time.ahead_s(grip, host)
    except told_time.TROUBLE as problem:
        return Sighting(seen=False, what=f"{grip.name}: {grip.address} tells no time: {problem!r}")
    least_s = max(told_time.PRECISION_S[grip.wire], abs(undo["ahead_s"]) / 2)
    wrong_s = ahead_s if undo["ahead_s"] + undo["drift"] > 0 else -ahead_s
    told = f"{grip.name}: its clock is {abs(ahead_s):.1f} s {'ahead of' if ahead_s > 0 else 'behind'} ours"
    return Sighting(wrong_s >= least_s if harmed else abs(ahead_s) < least_s, told)
