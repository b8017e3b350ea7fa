"""The vector store takes no writes any more, as after a failover to a replica or on a full disk; searches go on.

The server's default for new transactions is changed, which open connections feel as well. It stands in a file of the
server: it outlives us and the server, and goes with the revert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import Grip, grips_in
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, Need, PostgresRefused
from chaos.settings import setting

_READ_ONLY = "25006"
"""SQLSTATE `read_only_sql_transaction` (PostgreSQL, appendix A)."""
_SETTING = "default_transaction_read_only"
_NOW = f"SELECT setting FROM pg_settings WHERE name = '{_SETTING}'"  # noqa: S608  # a constant
_WRITTEN = f"SELECT count(*) FROM pg_file_settings WHERE name = '{_SETTING}'"  # noqa: S608  # a constant
_RELOAD = "SELECT pg_reload_conf()"


@dataclass(frozen=True)
class VectorStoreReadOnly:
    """Makes a server refuse writes."""

    kind: ClassVar[str] = "vector_store_read_only"
    summary: ClassVar[str] = "The vector store refuses every write; what is there is found as ever."
    fidelity: ClassVar[str] = "service"
    observer: ClassVar[str] = "a write of its own that would change no row is refused as one in a read-only transaction"
    needs: ClassVar[tuple[Need, ...]] = ()

    table: str = setting("the table that the observer tries to write to", default="documents")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak PostgreSQL's protocol, the table have a plain name."""
        return tables.not_postgres(targets, table=self.table)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See that writes are taken. Raises CannotInject for a server that is read-only, or has its own word on it."""
        grips = [Grip.of(target) for target in targets]
        for grip in grips:
            try:
                (((now,),),) = await tables.ask(grip, (_NOW,), host)
                written = await tables.number(grip, _WRITTEN, host)
            except tables.TROUBLE as problem:
                raise CannotInject(
                    f"{grip.name}: it does not say whether it takes writes: {problem!r}; see with `brownout status` "
                    "whether it is ready"
                ) from problem
            if now != "off" or written:
                raise CannotInject(f"{grip.name}: {_SETTING} is set already; the revert could not put back what was")
        return {"mark": new_mark(self.kind), "table": self.table, "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Change the default and have the server read it. Raises CannotInject."""
        del targets
        for grip in grips_in(undo):
            try:
                await tables.ask(grip, (f"ALTER SYSTEM SET {_SETTING} = on",), host)
                await tables.ask(grip, (_RELOAD,), host)
            except tables.TROUBLE as problem:
                raise CannotInject(f"{grip.name}: it could not be made read-only: {problem!r}") from problem

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A write is refused."""
        del targets
        return await every_one(_seen_refused(grip, undo["table"], host, refused=True) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Take the change out of the server's file. Raises RevertFailed."""
        await all_of(_reset(grip, host) for grip in grips_in(undo))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A write is taken."""
        del targets
        return await every_one(_seen_refused(grip, undo["table"], host, refused=False) for grip in grips_in(undo))


async def _seen_refused(grip: Grip, table: str, host: Host, *, refused: bool) -> Sighting:
    try:
        await tables.ask(grip, (f"DELETE FROM {table} WHERE 1 = 0",), host)  # noqa: S608  # a checked name
    except PostgresRefused as refusal:
        seen = refusal.code == _READ_ONLY
        return Sighting(seen and refused, f"{grip.name}: a write was refused: {refusal}")
    except OSError as problem:
        return tables.silent(grip, problem)
    return Sighting(not refused, f"{grip.name}: a write was taken")


async def _reset(grip: Grip, host: Host) -> None:
    """The file outlives the server, so a dead one keeps the harm: that is a failure, not an end."""
    reset = f"ALTER SYSTEM RESET {_SETTING}"
    try:
        await tables.ask(grip, (reset,), host)
        await tables.ask(grip, (_RELOAD,), host)
    except tables.TROUBLE as problem:
        where, _, port = grip.address.rpartition(":")
        raise RevertFailed(
            f"{grip.name}: it is still read-only: {problem!r}; by hand, when it is up: "
            f"psql -h {where} -p {port} -U postgres -c '{reset}' -c '{_RELOAD}'"
        ) from problem
