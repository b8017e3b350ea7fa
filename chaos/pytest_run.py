"""What the pytest plugin runs: one stack for the whole session, one event loop for each item."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from chaos.adapters.host import real_host
from chaos.attempt import Place, Ran, plan_now, run_one, stopped_by_signals
from chaos.paths import shown, state_root
from chaos.ports import Host
from chaos.progress import Lines
from chaos.report.summary import block
from chaos.run.stop import Stop
from chaos.spec.model import Experiment
from chaos.spec.render import render_full
from chaos.stacks.local import LocalStack, forget, start, stop, wait_ready
from chaos.verdict.outcome import BAD_INPUT
from chaos.wiring import read_experiment, standing_stack


@dataclass(frozen=True)
class BorrowedStack:
    """The stack that is up when it fits, else one of the session's own."""

    stack: LocalStack
    state: Path
    process: subprocess.Popen[bytes] | None

    @classmethod
    def up(cls, weaknesses: tuple[str, ...]) -> Self:
        """Find or start it. Raises StackTrouble."""
        return asyncio.run(cls._up(weaknesses, state_root(dict(os.environ))))

    @classmethod
    async def _up(cls, weaknesses: tuple[str, ...], state: Path) -> Self:
        async with real_host() as host:
            standing = standing_stack(state)
            inventory = await standing.inventory(host)
            if inventory is not None and sorted(inventory.weaknesses) == sorted(weaknesses):
                return cls(standing, state, None)
            own = LocalStack(state / "stacks" / f"own-{os.getpid()}")
            process = start(own, weaknesses, dies_with_us=True)
            borrowed = cls(own, state, process)
            try:
                await wait_ready(own, process, host)
            except BaseException:
                await borrowed._down(host)
                raise
            return borrowed

    def down(self) -> None:
        """Take it down if it is ours."""
        if self.process is not None:
            asyncio.run(self._down_alone())

    async def _down_alone(self) -> None:
        async with real_host() as host:
            await self._down(host)

    async def _down(self, host: Host) -> None:
        await stop(self.stack, host)
        if self.process is not None:
            self.process.wait()
        forget(self.stack)


def run_experiment(path: Path, stack: BorrowedStack, out: Path, seed: int) -> tuple[int, str]:
    """Run one file; its exit code and the text of its verdict. Raises KeyboardInterrupt after everything is reverted."""
    read = read_experiment(path, Path.cwd())
    if not isinstance(read, Experiment):
        return BAD_INPUT, render_full(read).rstrip("\n")
    stopping: list[str] = []
    lines: list[str] = []
    ran = asyncio.run(_run(read, stack, out, seed, lines, stopping))
    if stopping:
        raise KeyboardInterrupt
    return ran.exit_code, _text(ran, lines)


async def _run(
    experiment: Experiment, stack: BorrowedStack, out: Path, seed: int, lines: list[str], stopping: list[str]
) -> Ran:
    flag = Stop()
    async with real_host() as host, stopped_by_signals(flag, lines.append):
        planned = await plan_now(experiment, seed, Place(stack.stack, host, out, stack.state))
        ran = planned if isinstance(planned, Ran) else await run_one(*planned, flag, Lines(lines.append).tell)
    if flag.by in {"SIGINT", "SIGTERM"}:
        stopping.append(flag.by)
    return ran


def _text(ran: Ran, lines: list[str]) -> str:
    """Why, and where the report is; the run's own lines only when there is no verdict to read."""
    if ran.verdict is None or ran.run_dir is None:
        return "\n".join([*lines, ran.trouble or ""]).strip()
    report = shown(ran.run_dir / "report.md", Path.cwd())
    return "\n".join(filter(None, [ran.trouble, block(ran.verdict, report)]))
