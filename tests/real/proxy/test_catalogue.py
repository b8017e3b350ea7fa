"""Every fault on edges keeps its contract on our proxy and on a released Toxiproxy alike."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.net_down import NetDown
from chaos.faults.net_latency import NetLatency
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Duration
from tests.faults.machine import EDGES, edge_to, serving_engine

pytestmark = pytest.mark.real

FAULTS: tuple[Fault, ...] = (*EDGES, NetDown(), NetLatency(latency=Duration(0.15)))


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with serving_engine() as address:
        yield address


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_a_fault_on_an_edge_keeps_its_contract(fault: Fault, either: str, engine: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            target = await edge_to(host, either, engine, re.sub(r"\W+", "-", repr(fault)))
            await check_fault(fault, (target,), host, within_s=10.0)

    asyncio.run(main())


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_an_observer_confirms_nothing_that_was_not_injected(fault: Fault, either: str, engine: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            target = await edge_to(host, either, engine, "control-" + re.sub(r"\W+", "-", repr(fault)))
            await check_negative_control(fault, (target,), host, within_s=1.0)

    asyncio.run(main())
