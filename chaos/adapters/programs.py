"""Programs of this machine, run to their end; saboteurs are programs that end once their harm is in force."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from chaos.ports import Ran
from chaos.saboteurs.life import HarmFailed
from chaos.saboteurs.mending import mend


class LocalPrograms:
    """The `Programs` port."""

    async def look(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        """Run a program that alters nothing."""
        return await self.run(words, timeout_s=timeout_s)

    async def run(self, words: Sequence[str], *, timeout_s: float = 5.0) -> Ran:
        """Run any program to its end; never leaves it behind, also not when the caller is cancelled."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
            )
        except OSError as failure:
            return Ran(None, "", f"{words[0]} could not be started: {failure.strerror}")
        try:
            async with asyncio.timeout(timeout_s):
                output, errors = await process.communicate()
        except TimeoutError:
            return Ran(None, "", f"{words[0]} did not end within {timeout_s:g}s")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Ran(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))

    async def sabotage(self, program: str, warrant: Path, *, timeout_s: float = 10.0) -> Ran:
        """Start a saboteur of ours."""
        return await self.run([sys.executable, "-m", "chaos.saboteurs", program, str(warrant)], timeout_s=timeout_s)

    async def mend(self, program: str, mark: str, *, timeout_s: float = 10.0) -> Ran:
        """Clean up after saboteurs of ours, in a thread: to start a program for it would cost the revert its time."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.to_thread(mend, program, mark)
        except (HarmFailed, OSError) as failure:
            return Ran(1, "", str(failure) or type(failure).__name__)
        return Ran(0, "", "")
