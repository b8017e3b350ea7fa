"""Entries of a cache that are away: they lie in another database of the same server, where no client of it looks.

Nothing leaves the server, so the undo is two words: the number of that database, and our mark in it. The revert moves
every entry back that has not been written anew or expired meanwhile.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, RedisRefused, RedisReply

_KEYSPACE = re.compile(r"^db(\d+):keys=(\d+)", re.MULTILINE)
_DATABASES = 16
"""How many databases a server has unless it is told otherwise (redis.conf, valkey.conf: `databases 16`)."""
BATCH = "500"
"""Keys looked at by one SCAN."""


class EntriesAway(ABC):
    """Base of the faults; `inject` is their own."""

    kind: ClassVar[str]

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak the Redis protocol."""
        return tuple(
            f"{t.name}: it speaks {t.wire}, not the Redis protocol; choose a target of role cache"
            for t in targets
            if t.wire != "redis"
        )

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Find an empty database for each. Raises CannotInject for a cache that is empty, or has no such database."""
        grips = [Grip.of(target) for target in targets]
        spares = [await _spare_of(grip, host) for grip in grips]
        return {"mark": new_mark(self.kind), "spares": spares, "targets": [grip.to_json() for grip in grips]}

    @abstractmethod
    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring entries into the other database, our mark first. Raises CannotInject."""

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The entries are in the other database, our mark among them."""
        del targets
        return await every_one(_seen_away(grip, spare, undo["mark"], host) for grip, spare in pairs_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Move what is left back, our mark last. Raises RevertFailed."""
        await all_of(_bring_back(grip, spare, undo["mark"], host) for grip, spare in pairs_in(undo))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The cache answers, and our mark is nowhere."""
        del targets
        return await every_one(_seen_here(grip, spare, undo["mark"], host) for grip, spare in pairs_in(undo))


def pairs_in(undo: Undo) -> list[tuple[Grip, str]]:
    """Each cache with the number of the other database."""
    return list(zip(grips_in(undo), undo["spares"], strict=True))


async def ask(grip: Grip, commands: Sequence[Sequence[str]], host: Host) -> tuple[RedisReply, ...]:
    """Commands to a cache. Raises OSError or RedisRefused."""
    return await host.redis.ask(grip.address, commands, timeout_s=ANSWER_S)


async def _spare_of(grip: Grip, host: Host) -> str:
    try:
        (text,) = await ask(grip, (("INFO", "keyspace"),), host)
    except (OSError, RedisRefused) as problem:
        raise CannotInject(
            f"{grip.name} does not answer: {problem!r}; start it or wait until `brownout status` shows it ready"
        ) from problem
    held = {int(number): int(keys) for number, keys in _KEYSPACE.findall(str(text))}
    if not held.get(0):
        raise CannotInject(f"{grip.name}: its database 0 is empty, so there is nothing to flush; give it load first")
    empty = [number for number in range(_DATABASES - 1, 0, -1) if number not in held]
    if not empty:
        raise CannotInject(f"{grip.name}: all its databases are in use, so there is no place for what is flushed")
    return str(empty[0])


async def _look(grip: Grip, spare: str, mark: str, host: Host) -> tuple[bool, RedisReply, RedisReply]:
    """Whether our mark is away, and how many entries are away and here. Raises OSError or RedisRefused."""
    steps = (("SELECT", spare), ("EXISTS", mark), ("DBSIZE",), ("SELECT", "0"), ("DBSIZE",))
    _, marked, away, _, here = await ask(grip, steps, host)
    return marked == 1, away, here


async def _seen_away(grip: Grip, spare: str, mark: str, host: Host) -> Sighting:
    try:
        marked, away, here = await _look(grip, spare, mark, host)
    except (OSError, RedisRefused) as problem:
        return Sighting(seen=False, what=f"{grip.name}: {grip.address} does not answer: {problem!r}")
    if not marked:
        return Sighting(seen=False, what=f"{grip.name}: no mark in database {spare}; {here} entries in database 0")
    if away == 1:
        return Sighting(seen=False, what=f"{grip.name}: nothing but our mark is left in database {spare}")
    return Sighting(
        seen=True, what=f"{grip.name}: {away} entries and our mark are in database {spare}, {here} in database 0"
    )


async def _seen_here(grip: Grip, spare: str, mark: str, host: Host) -> Sighting:
    try:
        marked, _, here = await _look(grip, spare, mark, host)
    except (OSError, RedisRefused) as problem:
        return Sighting(seen=False, what=f"{grip.name}: {grip.address} does not answer: {problem!r}")
    return Sighting(
        not marked,
        f"{grip.name}: mark {'still ' if marked else 'not '}in database {spare}, {here} entries in database 0",
    )


async def _bring_back(grip: Grip, spare: str, mark: str, host: Host) -> None:
    """The data outlives the server, so a dead one leaves the harm in place: that is a failure, not an end."""
    try:
        if not (await _look(grip, spare, mark, host))[0]:
            return
        cursor = ""
        while cursor != "0":
            _, found = await ask(grip, (("SELECT", spare), ("SCAN", cursor or "0", "COUNT", BATCH)), host)
            cursor, keys = page_of(found)
            await _move_home(grip, spare, [key for key in keys if key != mark], host)
        await ask(grip, (("SELECT", spare), ("DEL", mark)), host)
    except (OSError, RedisRefused) as problem:
        where, _, port = grip.address.rpartition(":")
        raise RevertFailed(
            f"{grip.name}: its entries are still in database {spare}: {problem!r}; by hand, when it is up: "
            f"valkey-cli -h {where} -p {port} swapdb 0 {spare}"
        ) from problem


def page_of(found: RedisReply) -> tuple[str, tuple[str, ...]]:
    """Cursor and keys of a SCAN. Raises RedisRefused for another shape."""
    match found:
        case (str(cursor), tuple(keys)):
            return cursor, tuple(map(str, keys))
    raise RedisRefused(f"SCAN was answered with {found!r}")


async def _move_home(grip: Grip, spare: str, keys: Sequence[str], host: Host) -> None:
    """Move them; what database 0 has anew is newer, and the old one goes."""
    if keys:
        _, *moved = await ask(grip, (("SELECT", spare), *(("MOVE", key, "0") for key in keys)), host)
        stayed = [key for key, reply in zip(keys, moved, strict=True) if reply != 1]
        if stayed:
            await ask(grip, (("SELECT", spare), ("DEL", *stayed)), host)
