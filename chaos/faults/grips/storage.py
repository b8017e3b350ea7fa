"""What a target that keeps files says when it is made to use them: the eye of the faults below it.

    postgres   a sort too big for its memory is spilled to a file; a message is written to its log and synced
    redis      a key is made and dropped in one transaction, which goes to the append-only file
    http       the check that the target's handle `storage` names

It is the service itself that tells, over a connection of our own: what it could not do, or how long it took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.inventory import Target
from chaos.ports import Host, PostgresRefused, RedisRefused

OPERATIONS = ("open", "read", "write", "fsync")
NO_WRITES = "MISCONF"
"""How Redis and Valkey refuse writes while their append-only file fails."""
UNAVAILABLE = "503"
_SPILL = (
    "SELECT set_config('work_mem', '64kB', true)",
    "SELECT count(*) FROM (SELECT n FROM generate_series(1, 20000) AS n ORDER BY n DESC) AS spilled",
)
_SYNC = ("SELECT pg_logical_emit_message(true, 'brownout', '')",)


@dataclass(frozen=True)
class Touched:
    """How it went: `code` is the service's word for its trouble, empty when there was none."""

    code: str
    what: str
    took_s: float


@dataclass(frozen=True)
class Storage:
    """Where a target keeps its files, and for HTTP where it tells how they are."""

    grip: Grip
    folder: str
    check: str | None

    @classmethod
    def of(cls, target: Target, grip: Grip, folder: str) -> Storage:
        """From its handle; another `folder` stands in for the one named there."""
        handle = target.handles.get("storage", {})
        return cls(grip, folder or handle.get("folder", ""), handle.get("check"))

    def to_json(self) -> dict[str, Any]:
        """As it stands in `undo`."""
        return {"grip": self.grip.to_json(), "folder": self.folder, "check": self.check}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Storage:
        """Back from `undo`."""
        return cls(Grip.from_json(record["grip"]), record["folder"], record["check"])

    async def touch(self, operations: Sequence[str], mark: str, host: Host, *, within_s: float = ANSWER_S) -> Touched:
        """Have it do these to its files. Raises OSError when no answer comes."""
        began = host.clock.now()
        match self.grip.wire:
            case "postgres":
                code, what = await self._postgres(operations, host, within_s)
            case "redis":
                code, what = await self._redis(mark, host, within_s)
            case _:
                code, what = await self._http(host, within_s)
        return Touched(code, what, host.clock.now() - began)

    async def _postgres(self, operations: Sequence[str], host: Host, within_s: float) -> tuple[str, str]:
        syncs = "fsync" in operations
        statements = (*(_SPILL if set(operations) - {"fsync"} else ()), *(_SYNC if syncs else ()))
        try:
            await host.postgres.ask(self.grip.address, statements, timeout_s=within_s)
        except PostgresRefused as refused:
            return refused.code, str(refused)
        return "", "it spilled a sort to a file" + (" and synced its log" if syncs else "")

    async def _redis(self, mark: str, host: Host, within_s: float) -> tuple[str, str]:
        steps = (("MULTI",), ("SET", mark, "1"), ("DEL", mark), ("EXEC",))
        try:
            await host.redis.ask(self.grip.address, steps, timeout_s=within_s)
            (info,) = await host.redis.ask(self.grip.address, (("INFO", "persistence"),), timeout_s=within_s)
        except RedisRefused as refused:
            return str(refused).partition(" ")[0], str(refused)
        if "aof_last_write_status:ok" not in str(info):
            return NO_WRITES, "its last write to the append-only file failed"
        return "", "it wrote to its append-only file"

    async def _http(self, host: Host, within_s: float) -> tuple[str, str]:
        reply = await host.http.call("GET", self.check or "", timeout_s=within_s)
        if not reply.status:
            raise TimeoutError(reply.error) if (reply.error or "").startswith("timeout") else OSError(reply.error)
        return "" if reply.status == 200 else str(reply.status), f"its storage check said {reply.status}"


def unseen(target: Target, operations: Sequence[str], folder: str) -> tuple[str, ...]:
    """Why nothing could be done to this target's files, or be seen of it."""
    handle = target.handles.get("storage", {})
    if not folder and not handle.get("folder"):
        return (f"{target.name}: the inventory names no storage of it; give `folder`, or choose a target that has one",)
    if target.wire == "http" and not handle.get("check"):
        return (f"{target.name}: its handle `storage` names no check, so nobody could see the harm",)
    if target.wire == "redis" and "write" not in operations:
        return (f"{target.name}: a cache only writes while it runs; name `write` among the operations",)
    if target.wire == "http" and not {"write", "fsync"} & set(operations):
        return (f"{target.name}: its storage check writes; name `write` or `fsync` among the operations",)
    return ()
