"""One experiment on a ready stack with everything that can go wrong turned into an exit code and a sentence.

Shared by the command line and the pytest plugin: both hand in a stack and a listener, both get a `Ran`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.conduct import LeftBehind, Setting, Tell, conduct
from chaos.load.prompts import PromptError
from chaos.plan.plan import Plan
from chaos.ports import Host
from chaos.run.lock import StackBusy
from chaos.run.stop import Stop
from chaos.run.watchdog_process import WatchdogFailed
from chaos.spec.diagnostic import Diagnostic
from chaos.spec.model import Experiment
from chaos.spec.render import render_full
from chaos.stacks.local import LocalStack
from chaos.verdict.outcome import (
    BAD_INPUT,
    CODE_OF_ENDING,
    HARNESS_ERROR,
    NOT_REVERTED,
    UPHELD,
    Verdict,
    worst,
)
from chaos.wiring import dead_targets, planned
from chaos.writeup import NotARun, write_up


@dataclass(frozen=True)
class Ran:
    """What came of it. `trouble` is a complete message for people; `verdict` is there when the run could be judged."""

    exit_code: int
    trouble: str | None = None
    run_dir: Path | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Place:
    """Where runs happen and where they are kept; `stop_when_refuted` ends each as soon as nothing can change that."""

    stack: LocalStack
    host: Host
    out: Path
    state: Path
    stop_when_refuted: bool = False


async def plan_now(
    experiment: Experiment, seed: int, place: Place, inside: Path | None = None
) -> tuple[Plan, Setting] | Ran:
    """The plan against what is running at this moment, or why there is none. The run directory will be made `inside`,
    or below `place.out` in the folder of the experiment.
    """
    inventory = await place.stack.inventory(place.host)
    if inventory is None:
        return Ran(BAD_INPUT, "no stack is up; start it with `brownout up`")
    plan = planned(experiment, inventory, seed)
    problems: tuple[Diagnostic, ...] = dead_targets(plan, place.host) if isinstance(plan, Plan) else plan
    if problems or not isinstance(plan, Plan):
        return Ran(BAD_INPUT, render_full(problems).rstrip("\n"))
    out = inside or place.out / experiment.name
    return plan, Setting(place.stack, inventory, place.host, out, place.state, place.stop_when_refuted)


async def run_one(plan: Plan, setting: Setting, stop: Stop, tell: Tell) -> Ran:
    """Carry out a plan and write it up. Raises nothing that a person could have caused."""
    try:
        run_dir, finish = await conduct(plan, setting, stop, tell)
    except (StackBusy, PromptError) as reason:
        return Ran(BAD_INPUT, f"error: {reason}")
    except LeftBehind as reason:
        return Ran(NOT_REVERTED, f"error: {reason}")
    except WatchdogFailed as reason:
        return Ran(HARNESS_ERROR, f"error: {reason}; nothing was injected")
    except OSError as reason:
        return Ran(HARNESS_ERROR, f"error: the evidence could not be written: {reason}")
    code = worst([CODE_OF_ENDING[finish.ending], UPHELD if finish.reverted else NOT_REVERTED])
    return written_up(run_dir, code, f"error: {finish.why}" if finish.ending == "failed" else None)


def written_up(run_dir: Path, code: int, trouble: str | None = None) -> Ran:
    """Judge and report; a disk that is full for the reports leaves the evidence for `brownout report`. `code` is what
    the run has earned whatever is judged.
    """
    try:
        verdict = write_up(run_dir)
    except (OSError, NotARun) as reason:
        again = f"`brownout report {run_dir}` writes them again"
        return Ran(worst([code, HARNESS_ERROR]), f"error: the reports could not be written: {reason}; {again}", run_dir)
    return Ran(worst([code, verdict.exit_code]), trouble, run_dir, verdict)


@contextlib.asynccontextmanager
async def stopped_by_signals(stop: Stop, warn: Callable[[str], None]) -> AsyncIterator[None]:
    """SIGINT and SIGTERM ask the run to end; asking again changes nothing, because reverting cannot be skipped."""
    loop = asyncio.get_running_loop()

    def ask(name: str) -> None:
        first = stop.request(name)
        warn("reverting and ending the run" if first else "already reverting; this takes a moment")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask, number.name)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
