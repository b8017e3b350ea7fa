"""How late does a fault come? Our clock against plain asyncio.sleep: 500 injects each, planned 10 ms apart.

    python benchmarks/injection.py [--injects 500] [--rounds 5]

Both go through the keeper that runs use, with the no-op fault, real adapters and leases on disk, so the only difference
is who says when. A noop costs what every fault costs: an inject on time, a look at it, a revert. Lateness is the time
of the journal's `fault_injected` minus the planned time, in milliseconds. The ways take turns, round by round. Files
lie in memory where the system has /dev/shm: a sync of a busy disk can take longer than the 10 ms, and would be measured
with the next inject.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.host import real_host
from chaos.faults.fault import Undo
from chaos.faults.noop import Noop
from chaos.load.report import quantile
from chaos.plan.plan import PlannedFault
from chaos.ports import Clock
from chaos.run.keeper import FaultKeeper
from chaos.run.lease import Lease, LeaseStore

APART_S = 0.01
LEAD_S = 0.05
MEMORY = Path("/dev/shm")  # noqa: S108  a mount point; the folder in it is made by tempfile


class PlainClock(MonotonicClock):
    """What most programs do: sleep for the time that is left."""

    async def sleep_until(self, when: float) -> None:
        """Return at monotonic time `when` or some time after it."""
        await asyncio.sleep(when - self.now())


@dataclass
class LatenessJournal:
    """Notes how late each inject was recorded, in the clock's own time."""

    clock: Clock
    late_s: list[float] = field(default_factory=list)

    def record(self, kind: str, /, **fields: Any) -> None:
        """Keep injects only."""
        if kind == "fault_injected":
            self.late_s.append(self.clock.now() - fields["planned"])


def lease_of(fault: PlannedFault, undo: Undo) -> Lease:
    """A lease as a run grants it."""
    return Lease(
        id=fault.name,
        run="benchmark",
        run_dir=".",
        stack="none",
        fault=fault.name,
        kind=fault.fault.kind,
        targets=(),
        undo=undo,
        boot_id="benchmark",
        granted_at=0.0,
        lease_until=fault.lease_s,
    )


async def lateness(clock: Clock, count: int, folder: Path) -> list[float]:
    """Arm `count` faults, inject each when it is due, revert all; seconds of lateness."""
    journal = LatenessJournal(clock)
    async with real_host() as real:
        host = dataclasses.replace(real, clock=clock)
        keeper = FaultKeeper(host, journal, LeaseStore(folder, host.files), lease_of)
        faults = [PlannedFault(f"noop-{n}", Noop(), (), n * APART_S, n * APART_S + 1, 60.0) for n in range(count)]
        try:
            for fault in faults:
                await keeper.arm(fault)
            start = clock.now() + LEAD_S
            for fault in faults:
                await clock.sleep_until(start + fault.inject_at)
                await keeper.inject(fault, start + fault.inject_at)
        finally:
            await keeper.revert_all("stop")
            await keeper.settle()
    return journal.late_s


WAYS: tuple[tuple[str, Callable[[], Clock]], ...] = (("ours", MonotonicClock), ("plain asyncio", PlainClock))


def measure(injects: int, rounds: int, folder: Path) -> dict[str, list[float]]:
    """Lateness by way, the ways taking turns."""
    late: dict[str, list[float]] = {name: [] for name, _ in WAYS}
    for _ in range(rounds):
        for name, clock in WAYS:
            late[name] += asyncio.run(lateness(clock(), injects // rounds, folder))
    return late


def main() -> None:
    """Print the table and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--injects", type=int, default=500, help="injects of each way, split over the rounds")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="brownout-bench-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        tempfile.tempdir = folder  # where the no-op fault puts its markers
        late = measure(options.injects, options.rounds, Path(folder))
    shares = (0.5, 0.99)
    table = {name: [1000 * (quantile(values, share) or 0.0) for share in shares] for name, values in late.items()}
    print(f"{'clock':<14} {'injects':>7} {'p50 ms':>9} {'p99 ms':>9}")
    for name, (p50, p99) in table.items():
        print(f"{name:<14} {len(late[name]):>7} {p50:>9.3f} {p99:>9.3f}")
    ratios = [plain / ours for ours, plain in zip(table["ours"], table["plain asyncio"], strict=True)]
    print(f"{'plain / ours':<14} {'':>7} {ratios[0]:>9.1f} {ratios[1]:>9.1f}")


if __name__ == "__main__":
    main()
