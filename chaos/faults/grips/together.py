"""Reverts of several targets: one that fails never keeps the others from being reverted."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from chaos.faults.fault import RevertFailed


async def all_of(reverts: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all to their end at the same time. Raises RevertFailed with the messages of all that failed."""
    ended = await asyncio.gather(*reverts, return_exceptions=True)
    failed = [error for error in ended if isinstance(error, BaseException)]
    bugs = [error for error in failed if not isinstance(error, RevertFailed)]
    if bugs:
        raise bugs[0]
    if failed:
        raise RevertFailed("; ".join(str(error) for error in failed))
