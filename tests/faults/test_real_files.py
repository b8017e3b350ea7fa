"""Failing and slow files and wrong clocks of real servers, which are unharmed wherever the inject was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
import redis

from chaos.adapters.host import real_host
from chaos.faults.clock_skew import ClockSkew
from chaos.faults.fault import Fault
from chaos.faults.io_delay import IoDelay
from chaos.faults.io_error import IoError
from chaos.inventory import Target
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Duration, Ratio
from tests.faults.servers import connect, postgres, tools, valkey

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    """One of each wire."""
    with ExitStack() as stack:
        yield {
            "postgres": stack.enter_context(postgres()).target("store", "vector-store", "postgres"),
            "redis": stack.enter_context(valkey(tmp_path_factory.mktemp("v"))).target("cache", "cache", "redis"),
            "http": stack.enter_context(tools(tmp_path_factory.mktemp("t"))).target("tools", "tool", "http"),
        }


CASES: list[tuple[str, Fault]] = [
    ("postgres", IoError()),
    ("postgres", IoError(error="ENOSPC", operations=("write",))),
    ("redis", IoError(error="ENOSPC")),
    ("http", IoError()),
    ("postgres", IoDelay(operations=("write",), delay=Duration(0.2))),
    ("redis", IoDelay()),
    ("http", IoDelay(operations=("write", "fsync"))),
    ("postgres", ClockSkew()),
    ("redis", ClockSkew(direction="behind")),
    ("redis", ClockSkew(offset=Duration(0), drift=Ratio(0.5))),
    ("http", ClockSkew(offset=Duration(10))),
]


@pytest.mark.parametrize(("wire", "fault"), CASES, ids=repr)
def test_it_keeps_its_contract_on_a_real_server(targets: dict[str, Target], wire: str, fault: Fault) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_fault(fault, (targets[wire],), host)

    asyncio.run(main())


@pytest.mark.parametrize("wire", ["postgres", "redis", "http"])
@pytest.mark.parametrize("fault", [IoError(), IoDelay(), ClockSkew()], ids=repr)
def test_nothing_is_confirmed_that_was_not_injected(targets: dict[str, Target], wire: str, fault: Fault) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_negative_control(fault, (targets[wire],), host, within_s=0.5)

    asyncio.run(main())


def test_all_three_act_on_one_target_one_after_the_other_and_its_data_is_whole(targets: dict[str, Target]) -> None:
    store, port = targets["postgres"], int(targets["postgres"].address.rpartition(":")[2])
    with connect(port) as connection:
        connection.execute("CREATE TABLE kept AS SELECT n FROM generate_series(1, 1000) AS n")

    async def main() -> None:
        async with real_host() as host:
            for fault in (ClockSkew(), IoError(operations=("read",), share=Ratio(0.5)), IoDelay(share=Ratio(0.05))):
                undo = await fault.prepare((store,), host)
                await fault.inject((store,), undo, host)
                await fault.revert(undo, host)
                assert (await fault.confirm_gone((store,), undo, host)).seen

    asyncio.run(main())
    with connect(port) as connection:
        assert connection.execute("SELECT count(*), sum(n) FROM kept").fetchone() == (1000, 500_500)


def test_a_wrong_clock_and_failing_files_end_in_any_order(targets: dict[str, Target]) -> None:
    cache = targets["redis"]

    async def main() -> None:
        async with real_host() as host:
            skew, broken = ClockSkew(), IoError()
            skewed = await skew.prepare((cache,), host)
            await skew.inject((cache,), skewed, host)
            failing = await broken.prepare((cache,), host)
            await broken.inject((cache,), failing, host)
            await skew.revert(skewed, host)
            assert (await skew.confirm_gone((cache,), skewed, host)).seen
            assert (await broken.confirm((cache,), failing, host)).seen
            await broken.revert(failing, host)

    asyncio.run(main())


def test_clients_that_stay_connected_are_served_again(targets: dict[str, Target]) -> None:
    """A failed read of PostgreSQL ends a statement, a failed write of Valkey refuses one; neither ends a connection."""
    port = {wire: int(target.address.rpartition(":")[2]) for wire, target in targets.items()}
    both = (targets["postgres"], targets["redis"])
    with connect(port["postgres"]) as rows, redis.Redis(port=port["redis"]) as keys:

        async def main() -> None:
            async with real_host() as host:
                fault = IoError(operations=("read", "write"))
                undo = await fault.prepare(both, host)
                await fault.inject(both, undo, host)
                with pytest.raises(psycopg.errors.IoError):
                    rows.execute("SELECT pg_read_file('PG_VERSION')")
                assert (await fault.confirm(both, undo, host)).seen
                with pytest.raises(redis.ResponseError, match="MISCONF"):
                    keys.set("a", 1)
                await fault.revert(undo, host)

        asyncio.run(main())
        assert rows.execute("SELECT 1").fetchone() == (1,)
