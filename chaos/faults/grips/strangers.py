"""Faults that are traffic of strangers at a front door, which comes through the edge of its users.

Nobody in the experiment waits for these answers; what users feel, the experiment's own load tells. The observer reads
the front door's own count of requests: how many come each second, before and now.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting

_CAME = re.compile(r"^gateway_(?:requests_total\{[^}]*\}|inflight_requests|queue_depth) (\S+)$", re.MULTILINE)
"""Who has been dealt with, is dealt with, and waits: together all who have come."""
_LOOK_S = 1.0
_ENOUGH = 0.5
"""Of what shall come: users come and go by chance, and who is overloaded answers late."""
_PATIENT_S = 30.0

OBSERVER = (
    "the front door's own count of requests, read directly, rises by half of that rate and more over before, while "
    "/proc has who sends them"
)


def at_rate(least: float = 5.0) -> Any:
    """The setting `rate`. Less could not be told from the chance in what users do."""
    return setting("requests of strangers, mean; more are never sent", least=least, most=500)


def seeded() -> Any:
    """The setting `seed`."""
    return setting("seed of arrivals and questions", default=1, least=0)


@dataclass(frozen=True)
class Crowd:
    """One kind of strangers. Arrivals of `every_s` seconds come together; 0 spreads them."""

    rate_per_s: float
    every_s: float = 0.0
    prompt_words: int | None = None
    max_tokens: int = 24
    timeout_s: float = _PATIENT_S
    retries: int = 0

    def to_json(self) -> dict[str, Any]:
        """As the saboteur reads it."""
        return {
            "rate": self.rate_per_s,
            "every_s": self.every_s,
            "prompt_words": self.prompt_words,
            "max_tokens": self.max_tokens,
            "timeout_s": self.timeout_s,
            "retries": self.retries,
        }


class StrangersFault(SaboteurFault):
    """Base of the faults."""

    program: ClassVar[str] = "load"
    seed: int

    @abstractmethod
    def crowds(self) -> Sequence[Crowd]:
        """Who comes."""

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must be a front door."""
        return tuple(
            f"{t.name}: its role is {t.role}, so it counts no requests of users; choose a target of role gateway"
            for t in targets
            if t.role != "gateway" or t.wire != "http"
        )

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """How many requests come each second without the strangers. Raises CannotInject."""
        doors = []
        for target in targets:
            before = await _rate_per_s(target.address, host)
            if before is None:
                raise CannotInject(
                    f"{target.name} does not count its requests at {target.address}/metrics; "
                    "start it or wait until `brownout status` shows it ready"
                )
            at = target.via or target.address
            doors.append({"name": target.name, "address": target.address, "at": at, "before": before})
        return {"doors": doors, "added": sum(crowd.rate_per_s for crowd in self.crowds())}

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """All of them, at each front door."""
        return {
            "front_doors": [door["at"] for door in undo["doors"]],
            "seed": self.seed,
            "traffic": [crowd.to_json() for crowd in self.crowds()],
        }

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """Strangers are there, and each front door has more requests: users alone may come in greater numbers too."""
        if not host.processes.with_argument(undo["warrant"]):
            return Sighting(seen=False, what="no stranger is there")
        return await every_one(_crowded(door, undo, host) for door in undo["doors"])

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """Each answers. That nobody is left who could send is known already, and users come in numbers of their own."""
        return await every_one(_well(door, host) for door in undo["doors"])


async def _crowded(door: Mapping[str, Any], undo: Undo, host: Host) -> Sighting:
    now = await _rate_per_s(door["address"], host)
    if now is None:
        return _silent(door)
    what = f"{now:.1f} requests/s come, {door['before']:.1f}/s before; strangers send {undo['added']:g}/s"
    return Sighting(now >= door["before"] + _ENOUGH * undo["added"], f"{door['name']}: {what}")


async def _well(door: Mapping[str, Any], host: Host) -> Sighting:
    if await _count(door["address"], host) is None:
        return _silent(door)
    return Sighting(seen=True, what=f"{door['name']}: no stranger is left, and it counts its requests")


def _silent(door: Mapping[str, Any]) -> Sighting:
    return Sighting(seen=False, what=f"{door['name']}: no count of requests at {door['address']}/metrics")


async def _rate_per_s(address: str, host: Host) -> float | None:
    """Over one second; None when it does not answer."""
    first, began = await _count(address, host), host.clock.now()
    await host.clock.sleep_until(began + _LOOK_S)
    second = await _count(address, host)
    if first is None or second is None:
        return None
    return max(0.0, second - first) / (host.clock.now() - began)


async def _count(address: str, host: Host) -> float | None:
    reply = await host.http.call("GET", f"http://{address}/metrics")
    return sum(map(float, _CAME.findall(reply.body))) if reply.status == 200 else None
