"""Short calls over TCP and Unix sockets; trouble is part of the reply."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from chaos.adapters.http import HttpCalls, split_unix

pytestmark = pytest.mark.system


@contextlib.asynccontextmanager
async def _calls() -> AsyncIterator[HttpCalls]:
    calls = HttpCalls()
    try:
        yield calls
    finally:
        await calls.aclose()


async def _echo(request: web.Request) -> web.Response:
    said = {
        "path": request.path,
        "method": request.method,
        "body": await request.text(),
        "allowed": request.headers.get("Authorization"),
        "peer": str(id(request.transport)),
    }
    return web.json_response(said, status=201, headers={"x-mark": "1"})


async def _slow(_: web.Request) -> web.Response:
    await asyncio.sleep(5)
    return web.Response()


@contextlib.asynccontextmanager
async def _server(path: Path) -> AsyncIterator[tuple[str, str]]:
    """The same app on a Unix socket and a TCP port; gives both base URLs."""
    app = web.Application()
    app.router.add_get("/slow", _slow)
    app.router.add_route("*", "/{tail:.*}", _echo)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(path / "control.sock")).start()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = next(a[1] for a in runner.addresses if isinstance(a, tuple))
        yield f"unix://{path}/control.sock:", f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("which", [0, 1])
def test_a_call_brings_status_body_and_headers_over_both_kinds_of_socket(tmp_path: Path, which: int) -> None:
    async def main() -> None:
        async with _server(tmp_path) as bases, _calls() as http:
            reply = await http.call("POST", bases[which] + "/targets/tools/hold", {"by": "h"})
            assert (reply.status, reply.headers["x-mark"], reply.error) == (201, "1", None)
            said = json.loads(reply.body)
            assert (said["method"], said["path"]) == ("POST", "/targets/tools/hold")
            assert json.loads(said["body"]) == {"by": "h"}

    asyncio.run(main())


@pytest.mark.parametrize("which", [0, 1])
def test_calls_reuse_one_connection(tmp_path: Path, which: int) -> None:
    async def main() -> None:
        async with _server(tmp_path) as bases, _calls() as http:
            replies = [await http.call("GET", bases[which] + "/x") for _ in range(3)]
            assert len({json.loads(reply.body)["peer"] for reply in replies}) == 1

    asyncio.run(main())


def test_trouble_begins_with_the_word_that_tells_its_kind(tmp_path: Path) -> None:
    async def main() -> list[str]:
        with socket.socket() as closed, socket.socket(socket.AF_UNIX) as left_over:
            closed.bind(("127.0.0.1", 0))
            left_over.bind(str(tmp_path / "dead.sock"))
            async with _server(tmp_path) as (_, tcp), _calls() as http:
                replies = [
                    await http.call("GET", f"unix://{tmp_path}/none.sock:/status"),
                    await http.call("GET", f"unix://{tmp_path}/dead.sock:/status"),
                    await http.call("GET", f"http://127.0.0.1:{closed.getsockname()[1]}/"),
                    await http.call("GET", tcp + "/slow", timeout_s=0.05),
                ]
        assert {reply.status for reply in replies} == {0}
        return [(reply.error or "").partition(":")[0] for reply in replies]

    assert asyncio.run(main()) == ["absent", "refused", "refused", "timeout"]


def test_a_server_that_came_back_is_reached_although_the_kept_connection_died(tmp_path: Path) -> None:
    async def main() -> None:
        async with _calls() as http:
            for _ in range(2):
                async with _server(tmp_path) as (unix, _):
                    assert (await http.call("GET", unix + "/x")).status == 201
                (tmp_path / "control.sock").unlink(missing_ok=True)

    asyncio.run(main())


def test_a_unix_url_names_socket_and_route() -> None:
    assert split_unix("unix:///run/a:b/c.sock:/targets/x:/y") == ("/run/a:b/c.sock", "/targets/x:/y")
    with pytest.raises(ValueError, match="is not unix"):
        split_unix("unix:///run/c.sock")


def test_the_token_is_read_from_its_file_for_every_call(tmp_path: Path) -> None:
    async def main() -> list[str | None]:
        async with _server(tmp_path) as (_, base), _calls() as calls:
            file, said = tmp_path / "admin.token", []
            for content in (None, "one\n", "two\n"):
                if content:
                    file.write_text(content)
                reply = await calls.call("GET", f"{base}/", token_file=str(file))
                said.append(json.loads(reply.body)["allowed"])
            return said

    assert [None, "Bearer one", "Bearer two"] == asyncio.run(main())
