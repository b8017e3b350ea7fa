r"""Programs in memory: answers by the beginning of a command, and saboteurs as processes of the table.

world.programs.answers["iptables -S"] = Ran(0, "-P INPUT ACCEPT\n", "")
world.programs.tools["prlimit"] = lambda words: Ran(0, "", "")
world.programs.at_work("cpu")          # the orders of each saboteur of that program that lives now
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos.ports import Files, Ran
from chaos.testing.stack import ProcessTable

_LASTING = ("clock",)
"""Saboteurs whose harm is there until it is mended."""


class FakePrograms:
    """The `Programs` port. A command nobody has an answer for cannot be started."""

    def __init__(self, processes: ProcessTable, files: Files) -> None:
        """No tool yet; any saboteur can be started."""
        self.answers: dict[str, Ran] = {}
        self.tools: dict[str, Callable[[Sequence[str]], Ran]] = {}
        self.refusals: list[str] = []
        self._processes = processes
        self._files = files
        self._started: list[tuple[str, Path, Mapping[str, Any]]] = []
        self._mended: set[str] = set()

    async def look(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        """As `run`."""
        return await self.run(words, timeout_s=timeout_s)

    async def run(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        """What the tool says, or the answer with the longest fitting beginning."""
        del timeout_s
        await asyncio.sleep(0)
        if words[0] in self.tools:
            return self.tools[words[0]](words)
        line = " ".join(words)
        fitting = [beginning for beginning in self.answers if line.startswith(beginning)]
        if not fitting:
            return Ran(None, "", f"{words[0]} could not be started: No such file or directory")
        return self.answers[max(fitting, key=len)]

    async def sabotage(self, program: str, warrant: Path, *, timeout_s: float = 10.0) -> Ran:
        """A process that stays, if its warrant is there; or the next of the `refusals`."""
        del timeout_s
        await asyncio.sleep(0)
        orders = self._files.read(warrant)
        if self.refusals:
            return Ran(1, "", self.refusals.pop(0))
        if orders is None:
            return Ran(1, "", "its warrant is gone")
        self._processes.spawn(words=("python", "-m", "chaos.saboteurs", program, str(warrant)))
        self._started.append((program, warrant, json.loads(orders)))
        return Ran(0, "", "")

    def pid_of(self, orders: Mapping[str, Any]) -> int | None:
        """The process that has these orders."""
        warrants = (warrant for _, warrant, given in self._started if given is orders)
        return next((found[0].pid for each in warrants if (found := self._processes.with_argument(str(each)))), None)

    async def mend(self, program: str, mark: str, *, timeout_s: float = 10.0) -> Ran:
        """What its saboteurs left under the mark is no more."""
        del program, timeout_s
        await asyncio.sleep(0)
        self._mended.add(mark)
        return Ran(0, "", "")

    def at_work(self, program: str, pids: Sequence[int] | None = None) -> list[Mapping[str, Any]]:
        """The orders of each saboteur of this program that is in force, on one of these processes if any are given."""
        found = [(warrant, orders) for name, warrant, orders in self._started if name == program]
        orders_in_force = [orders for warrant, orders in found if self._in_force(program, warrant, orders)]
        if pids is None:
            return orders_in_force
        return [orders for orders in orders_in_force if any(pid in pids for pid, _ in orders["processes"])]

    def _in_force(self, program: str, warrant: Path, orders: Mapping[str, Any]) -> bool:
        """It lives and has its warrant, or what it did outlives it."""
        if program in _LASTING:
            return orders["mark"] not in self._mended
        return bool(self._processes.with_argument(str(warrant))) and self._files.read(warrant) is not None
