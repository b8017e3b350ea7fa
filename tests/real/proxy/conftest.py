"""A real Toxiproxy server beside ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.proxy.servers import running, server_command


@pytest.fixture(scope="module", params=["brownout", "toxiproxy"])
def either(request: pytest.FixtureRequest) -> Iterator[str]:
    """The admin address of ours, then of a Toxiproxy."""
    with running(*server_command(request.param)) as address:
        yield address


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    """The admin address of our server."""
    with running(*server_command("brownout")) as address:
        yield address


@pytest.fixture(scope="module")
def toxiproxy() -> Iterator[str]:
    """The admin address of a Toxiproxy."""
    with running(*server_command("toxiproxy")) as address:
        yield address
