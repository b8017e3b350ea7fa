"""Operators ask on a socket of their own, are told what is wrong, and users cannot reach it."""

from __future__ import annotations

import asyncio
import stat
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from target_stack.gateway.admin import open_admin

pytestmark = pytest.mark.system


class Operator:
    """A client on the socket."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def call(self, method: str, path: str = "", **options: Any) -> tuple[int, Any]:
        async with self._session.request(method, f"http://gateway/admin/releases{path}", **options) as reply:
            return reply.status, await reply.json()


@pytest.fixture
def socket() -> Any:
    """A short path, whatever the folder of the tests is."""
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        yield Path(folder) / "admin.sock"


def operate(path: Path) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)))


async def test_a_release_is_started_seen_and_rolled_back(serve: Any, socket: Path) -> None:
    async with serve(gateway={"admin": str(socket)}) as stack, open_admin(stack.gateway), operate(socket) as s:
        operator = Operator(s)
        body = {"name": "r2", "model": "brownout-chat-v2", "config": {"max_tokens": 50}}
        status, report = await operator.call("POST", json=body)
        assert (status, report["canary"]["model"], report["share"]) == (201, "brownout-chat-v2", 0.05)
        assert (await operator.call("GET"))[1] == report
        assert (await operator.call("POST", json={"name": "r3"}))[0] == 409
        assert (await operator.call("POST", "/rollback", json={"release": "other"}))[0] == 409
        status, report = await operator.call("POST", "/rollback", json={"release": "r2"})
        assert (status, report["canary"], report["stable"]["name"], report["split"]) == (200, None, "first", False)
        names = [event["name"] for event in stack.events()]
        assert names == ["release_started", "canary_rolled_back"]


async def test_everybody_can_be_switched_at_once_and_back(serve: Any, socket: Path) -> None:
    async with serve(gateway={"admin": str(socket)}) as stack, open_admin(stack.gateway), operate(socket) as s:
        operator = Operator(s)
        before = (await operator.call("GET"))[1]["stable"]
        status, report = await operator.call("POST", json={"name": "r2", "code": "2", "canary": False})
        assert (status, report["stable"]["name"], report["previous"]) == (201, "r2", before)
        assert (await stack.chat()).headers["x-release"] == "r2"
        assert (await operator.call("POST", "/rollback"))[1]["stable"] == before


@pytest.mark.parametrize(
    ("options", "status", "param"),
    [
        ({"data": b"{"}, 400, None),
        ({"json": [1]}, 400, None),
        ({"json": {}}, 400, "name"),
        ({"json": {"name": "r2", "canary": "no"}}, 400, "canary"),
        ({"json": {"name": "r2", "code": "99"}}, 400, "code"),
        ({"json": {"name": "r2", "model": "gpt-9"}}, 400, "model"),
        ({"json": {"name": "r2", "config": {"max_tokens": -1}}}, 400, "config.max_tokens"),
        ({"json": {"name": "first"}}, 409, None),
    ],
)
async def test_bad_input_is_told_in_openais_shape_and_changes_nothing(
    serve: Any, socket: Path, options: dict[str, Any], status: int, param: str | None
) -> None:
    async with serve(gateway={"admin": str(socket)}) as stack, open_admin(stack.gateway), operate(socket) as s:
        before = stack.gateway.releases.state
        found, body = await Operator(s).call("POST", **options)
        assert (found, body["error"]["param"]) == (status, param)
        assert stack.gateway.releases.state is before


async def test_nothing_before_the_first_release_can_be_rolled_back_to(serve: Any, socket: Path) -> None:
    async with serve(gateway={"admin": str(socket)}) as stack, open_admin(stack.gateway), operate(socket) as s:
        assert (await Operator(s).call("POST", "/rollback"))[0] == 409
        assert (await Operator(s).call("DELETE"))[0] == 405
        assert (await Operator(s).call("GET", "/nowhere"))[0] == 404


async def test_an_engine_that_does_not_say_what_it_serves_does_not_stand_in_the_way(serve: Any, socket: Path) -> None:
    async with serve(gateway={"admin": str(socket)}) as stack, open_admin(stack.gateway), operate(socket) as s:
        await stack.b.stop()
        assert (await Operator(s).call("POST", json={"name": "r2", "model": "brownout-chat-v2"}))[0] == 201


async def test_nobody_but_its_owner_can_open_the_socket(serve: Any, socket: Path) -> None:
    async with serve(gateway={"admin": str(socket)}) as stack, open_admin(stack.gateway):
        found = await asyncio.to_thread(socket.stat)
        assert stat.S_IMODE(found.st_mode) == 0o600


async def test_users_cannot_reach_it(serve: Any) -> None:
    async with serve() as stack:
        assert (await stack.get("/admin/releases")).status == 404
        assert (await stack.post("/admin/releases", json={"name": "r2"})).status == 404
