"""The real machine as one `Host`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.files import LocalFiles
from chaos.adapters.http import HttpCalls
from chaos.adapters.network import TcpNetwork
from chaos.adapters.postgres import PostgresCalls
from chaos.adapters.processes import ProcFs
from chaos.adapters.programs import LocalPrograms
from chaos.adapters.redis import RedisCalls
from chaos.ports import Host


@contextlib.asynccontextmanager
async def real_host() -> AsyncIterator[Host]:
    """All real ports, for the running event loop; kept connections end with the block."""
    http = HttpCalls()
    try:
        yield Host(
            clock=MonotonicClock(),
            processes=ProcFs(),
            programs=LocalPrograms(),
            network=TcpNetwork(),
            http=http,
            redis=RedisCalls(),
            postgres=PostgresCalls(),
            files=LocalFiles(),
        )
    finally:
        await http.aclose()
