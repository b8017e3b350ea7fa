"""Caches on the addresses of an in-memory stack: numbered databases of keys, with the commands that faults use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase

from chaos.ports import RedisRefused, RedisReply
from chaos.testing.reach import reach
from chaos.testing.stack import FakeProxy, FakeSupervisor
from chaos.testing.tampered import Tampered

Databases = dict[int, dict[str, str]]
FULL = {"answer:1": "one", "answer:2": "two", "answer:3": "three"}
"""What a cache holds at first."""


class FakeRedis:
    """The `Redis` port: every target whose wire is `redis` has databases, which outlive its processes."""

    def __init__(self, supervisor: FakeSupervisor, proxy: FakeProxy, tampered: Tampered) -> None:
        """Addresses are looked up at each call."""
        self._supervisor = supervisor
        self._proxy = proxy
        self._tampered = tampered
        self._databases: dict[str, Databases] = {}

    def databases(self, name: str) -> Databases:
        """Of the target with this name."""
        return self._databases.setdefault(name, {0: dict(FULL)})

    async def ask(
        self, address: str, commands: Sequence[Sequence[str]], *, timeout_s: float = 1.0
    ) -> tuple[RedisReply, ...]:
        """Run them in order; MULTI and EXEC change nothing, as nobody comes between."""
        owner = await reach(self._supervisor, self._proxy, address, "redis", timeout_s)
        if ("INFO", "persistence") in commands:
            return (f"aof_last_write_status:{'err' if self._tampered.error(owner) else 'ok'}",)
        if ("TIME",) in commands:
            now_s = self._tampered.told_s(owner)
            return ((str(int(now_s)), str(int(now_s % 1 * 1e6))),)
        writes = any(name in ("SET", "DEL") for name, *_ in commands)
        await asyncio.sleep(min(timeout_s, self._tampered.delay_s(owner) if writes else 0))
        return _run(self.databases(owner.record.name), commands)


def _run(databases: Databases, commands: Sequence[Sequence[str]]) -> tuple[RedisReply, ...]:
    here, replies = 0, []
    for name, *words in commands:
        if name == "SELECT":
            here = int(words[0])
        replies.append(_reply(databases, here, name, words))
    return tuple(replies)


def _reply(databases: Databases, here: int, name: str, words: Sequence[str]) -> RedisReply:
    keys = databases.setdefault(here, {})
    match name, words:
        case ("SELECT" | "MULTI" | "EXEC", _):
            return "OK"
        case "INFO", ["keyspace"]:
            lines = [f"db{number}:keys={len(held)},expires=0" for number, held in sorted(databases.items()) if held]
            return "\r\n".join(["# Keyspace", *lines])
        case "DBSIZE", _:
            return len(keys)
        case "EXISTS", [key]:
            return int(key in keys)
        case "SET", [key, value]:
            keys[key] = value
            return "OK"
        case "DEL", _:
            return sum(keys.pop(key, None) is not None for key in words)
        case "SWAPDB", [one, other]:
            databases[int(one)], databases[int(other)] = databases.get(int(other), {}), databases.get(int(one), {})
            return "OK"
        case "SCAN", [_, *options]:
            glob = options[options.index("MATCH") + 1] if "MATCH" in options else "*"
            return "0", tuple(key for key in keys if fnmatchcase(key, glob))
        case "COPY", [key, other, "DB", number]:
            there = databases.setdefault(int(number), {})
            return int(key in keys and there.setdefault(other, keys[key]) == keys[key])
        case "PEXPIREAT", [key, _]:
            return int(keys.pop(key, None) is not None)
        case "MOVE", [key, to]:
            return _move(keys, databases.setdefault(int(to), {}), key)
    raise RedisRefused(f"ERR unknown command '{name}'")


def _move(keys: dict[str, str], there: dict[str, str], key: str) -> int:
    if key not in keys or key in there:
        return 0
    there[key] = keys.pop(key)
    return 1
