"""A small HTTP server for pages that are read while a run goes on, bounded in everything a reader could use up.

One request a connection, 8 KiB of it at most, 5 s for it and its answer, 32 connections at a time. Without a token it
listens on loopback alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from chaos.live.page import Answer, LivePage
from chaos.ports import Clock
from chaos.proxy.token import TokenTrouble, token_in

MOST_CONNECTIONS = 32
MOST_BYTES = 8192
WITHIN_S = 5.0

_PLAIN = "text/plain; charset=utf-8"


class CannotListen(Exception):
    """The address is wrong, taken or not ours to open; the message says which and what to do."""


@contextlib.asynccontextmanager
async def serving(page: LivePage, listen: str, token_file: Path | None = None) -> AsyncIterator[str]:
    """Serve the page for the length of the block; yields the address, its port chosen where `listen` says 0.

    With a token file, which is made when it is not there, its content is asked of everybody. Raises CannotListen.
    """
    host, port = _split(listen)
    if token_file is None and not _is_loopback(host):
        raise CannotListen(f"`{listen}` can be reached from other machines, so it needs a token file")
    try:
        reader = _Reader(page, token_in(token_file) if token_file else None)
        server = await asyncio.start_server(reader.serve, host, port, limit=MOST_BYTES)
    except TokenTrouble as problem:
        raise CannotListen(str(problem)) from problem
    except OSError as problem:
        raise CannotListen(f"`{listen}` cannot be listened on: {problem.strerror or problem}") from problem
    try:
        yield _address(server)
    finally:
        server.close()
        await reader.end()


@contextlib.asynccontextmanager
async def watched(
    listen: str | None, token_file: str | None, clock: Clock, warn: Callable[[str], None]
) -> AsyncIterator[LivePage | None]:
    """A page that is served where `listen` says, told to people; None where nobody wants one. Raises CannotListen."""
    if listen is None:
        yield None
        return
    page = LivePage(clock, warn)
    async with serving(page, listen, Path(token_file) if token_file else None) as address:
        warn(f"metrics on http://{address}/metrics")
        yield page


def _split(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise CannotListen(f"`{listen}` is not HOST:PORT; write for example 127.0.0.1:9464, or port 0 for any")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(server: asyncio.Server) -> str:
    host, port = server.sockets[0].getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass
class _Reader:
    """Answers connections; `end` cuts off those that are still open."""

    page: LivePage
    token: str | None
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, whatever comes over it."""
        task = asyncio.current_task()
        if task is None or len(self._open) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(WITHIN_S):
                    writer.write(self._reply(await reader.readuntil(b"\r\n\r\n")))
                    await writer.drain()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._open.discard(task)
            writer.close()

    async def end(self) -> None:
        """Nobody is waited for."""
        tasks = tuple(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _reply(self, request: bytes) -> bytes:
        first, *lines = request.decode("latin-1").split("\r\n")
        words = first.split(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _written(Answer(400, _PLAIN, "this is not HTTP/1.1\n"))
        answer = self._answer(words[0], words[1].partition("?")[0], headers.get)
        return _written(answer, with_body=words[0] != "HEAD")

    def _answer(self, method: str, path: str, header: Callable[[str, str], str]) -> Answer:
        if self.token is not None and not self._let_in(header("authorization", "")):
            return Answer(401, _PLAIN, "missing or wrong token\n")
        if method not in ("GET", "HEAD"):
            return Answer(405, _PLAIN, "only GET and HEAD\n")
        try:
            return self.page.answer(path, header("accept", ""))
        except Exception as problem:  # noqa: BLE001  a page that cannot be drawn must not end the run
            self.page.note(problem)
            return Answer(500, _PLAIN, "this page has trouble; the run goes on\n")

    def _let_in(self, said: str) -> bool:
        return hmac.compare_digest(said.encode("utf-8", "replace"), f"Bearer {self.token}".encode())


def _written(answer: Answer, *, with_body: bool = True) -> bytes:
    body = answer.body.encode()
    lines = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
        *(["WWW-Authenticate: Bearer"] if answer.status == 401 else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + (body if with_body else b"")
