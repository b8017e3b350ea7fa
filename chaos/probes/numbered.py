"""Lists that a target numbers and tells from a number on: events, spans, ledgers. One call, one answer, checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from chaos.ports import Host

Entry = Mapping[str, Any]


async def ask_after(
    after: int, url: str, host: Host, *, who: str, entries_of: Callable[[Any], list[Entry]]
) -> tuple[list[Entry], int]:
    """Entries after a number, in order of their `seq`, and the number of the last that there is.

    `who` names the page in what is said of it; `entries_of` takes the entries out of the answer and may raise KeyError,
    TypeError or ValueError. Raises ValueError.
    """
    reply = await host.http.call("GET", f"{url}?after={after}", timeout_s=1.0)
    if reply.status != 200:
        raise ValueError(reply.error or f"{who} answered {reply.status}")
    try:
        told = json.loads(reply.body)
        return sorted(entries_of(told), key=lambda entry: entry["seq"]), int(told["last"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{who} answered something else: {error!r}") from error
