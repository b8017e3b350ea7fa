"""What time a target says it is: PostgreSQL and Redis when asked, HTTP in the `date` of every answer."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.ports import Host, PostgresRefused, RedisRefused

PRECISION_S = {"postgres": 0.25, "redis": 0.25, "http": 1.5}
"""A difference below this may come from the asking; HTTP tells whole seconds (RFC 9110, 5.6.7)."""
TROUBLE = (OSError, PostgresRefused, RedisRefused, ValueError)
"""What a look raises."""
_NOW = "SELECT extract(epoch FROM clock_timestamp())"


async def ahead_s(grip: Grip, host: Host) -> float:
    """By how much its clock is ahead of ours. Raises one of TROUBLE when it does not tell."""
    before = host.clock.wall()
    theirs = await _asked(grip, host)
    return theirs - (before + host.clock.wall()) / 2


async def _asked(grip: Grip, host: Host) -> float:
    match grip.wire:
        case "postgres":
            (((now,),),) = await host.postgres.ask(grip.address, (_NOW,), timeout_s=ANSWER_S)
            return float(now or "nan")
        case "redis":
            (told,) = await host.redis.ask(grip.address, (("TIME",),), timeout_s=ANSWER_S)
            seconds, microseconds = map(str, told) if isinstance(told, tuple) else ("nan", "0")
            return float(seconds) + float(microseconds) / 1e6
        case _:
            reply = await host.http.call("GET", f"http://{grip.address}/ping", timeout_s=ANSWER_S)
            if "date" not in reply.headers:
                raise OSError(reply.error or "its answer has no date")
            return parsedate_to_datetime(reply.headers["date"]).timestamp() + 0.5
