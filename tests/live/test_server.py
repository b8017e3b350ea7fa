"""The page over HTTP: what is at which path, who may read it, and that it can do no harm."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from prometheus_client import parser as classic
from prometheus_client.openmetrics import parser as openmetrics

from chaos.adapters.clock import MonotonicClock
from chaos.live import server
from chaos.live.page import REST, LivePage
from chaos.live.server import CannotListen, serving, watched
from chaos.progress import Lines, Overheard
from tests.live.told import plan, told
from tests.loopback import free_address
from tests.verdict.story import INJECT, Story

Talk = Callable[[str], Awaitable[tuple[int, dict[str, str], str]]]


async def ask(address: str, head: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of one request that is written down whole."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    whole = ""
    with contextlib.closing(writer), contextlib.suppress(ConnectionError):
        writer.write(head.encode())
        whole = (await reader.read()).decode()
    top, _, body = whole.partition("\r\n\r\n")
    first, *lines = top.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split()[1]) if whole else 0, headers, body


def get(path: str, **headers: str) -> str:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n"


def during_the_fault(*, until_s: float = INJECT + 3) -> LivePage:
    page = LivePage(MonotonicClock(), lambda _: None)
    tell = page.follow(plan())
    for kind, fields in told(Story(), until_s):
        tell(kind, {**fields, "origin": MonotonicClock().now() - until_s} if kind == "run_started" else fields)
    return page


def serve(page: LivePage, *heads: str, token_file: Path | None = None) -> list[tuple[int, dict[str, str], str]]:
    async def main() -> list[tuple[int, dict[str, str], str]]:
        async with serving(page, "127.0.0.1:0", token_file) as address:
            return [await ask(address, head) for head in heads]

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("accept", "reader", "kind"),
    [
        ("*/*", classic, "text/plain"),
        ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", openmetrics, "application/openmetrics-text"),
    ],
)
def test_metrics_in_the_format_that_was_asked_for(accept: str, reader: object, kind: str) -> None:
    ((status, headers, body),) = serve(during_the_fault(), get("/metrics", Accept=accept))
    samples = {
        (s.name, s.labels.get("window")): s.value
        for f in reader.text_string_to_metric_families(body)
        for s in f.samples
    }
    assert (200, kind) == (status, headers["content-type"].partition(";")[0])
    assert (1.0, 0.0) == (samples["brownout_window", "outage"], samples["brownout_window", "baseline"])
    assert 1.0 == samples["brownout_fault_in_force", None]


def test_annotations_are_an_array_of_flat_objects() -> None:
    ((status, headers, body),) = serve(during_the_fault(), get("/annotations"))
    found = json.loads(body)
    assert (200, "application/json") == (status, headers["content-type"])
    assert {"time", "timeEnd", "title", "text", "tags", "run"} == {key for each in found for key in each}
    assert ["outage"] == [each["title"] for each in found if ",fault," in each["tags"]]


def test_annotations_of_earlier_runs_of_the_session_stay() -> None:
    page = during_the_fault(until_s=1e9)
    page.follow(plan())
    ((_, _, metrics), (_, _, annotations)) = serve(page, get("/metrics"), get("/annotations"))
    assert "brownout_run_info" not in metrics
    assert "outage" in annotations


def test_before_the_first_run_there_is_an_empty_page() -> None:
    page = LivePage(MonotonicClock(), lambda _: None)
    assert [(200, "# EOF\n"), (200, "[]")] == [
        (status, body)
        for status, _, body in serve(page, get("/metrics", Accept="application/openmetrics-text"), get("/annotations"))
    ]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (get("/"), 404),
        ("POST /metrics HTTP/1.1\r\n\r\n", 405),
        ("nonsense\r\n\r\n", 400),
        ("GET /metrics HTTP/2\r\n\r\n", 400),
        ("\x00\x01\xff\r\n\r\n", 400),
        (get("/metrics?x=1"), 200),
    ],
)
def test_whatever_comes_gets_an_answer(head: str, status: int) -> None:
    assert [status] == [found for found, _, _ in serve(during_the_fault(), head)]


def test_a_request_that_never_ends_its_head_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "WITHIN_S", 0.05)
    assert [0, 0, 200] == [s for s, _, _ in serve(during_the_fault(), "GET /", "x" * 100_000, get("/metrics"))]


def test_more_readers_than_it_serves_at_a_time_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)

    async def main() -> list[int]:
        async with serving(during_the_fault(), "127.0.0.1:0") as address:
            host, _, port = address.rpartition(":")
            _, idle = await asyncio.open_connection(host, int(port))
            await asyncio.sleep(0.05)
            refused, _, _ = await ask(address, get("/metrics"))
            idle.close()
            await asyncio.sleep(0.05)
            served, _, _ = await ask(address, get("/metrics"))
            return [refused, served]

    assert [0, 200] == asyncio.run(main())


def test_the_end_of_the_session_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "WITHIN_S", 600)

    async def main() -> None:
        async with asyncio.timeout(60), serving(during_the_fault(), "127.0.0.1:0") as address:
            host, _, port = address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            await asyncio.sleep(0.05)
        writer.close()

    asyncio.run(main())


def test_with_a_token_file_only_who_sends_its_content_may_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("open-sesame\n")
    file.chmod(0o600)
    heads = [
        get("/metrics"),
        get("/metrics", Authorization="Bearer wrong"),
        get("/metrics", Authorization="Bearer open-sesame"),
    ]
    assert [401, 401, 200] == [status for status, _, _ in serve(during_the_fault(), *heads, token_file=file)]


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("0.0.0.0:0", "other machines"),
        (":9464", "is not HOST:PORT"),
        ("localhost", "is not HOST:PORT"),
        ("127.0.0.1:99999", "is not HOST:PORT"),
        ("metrics.example.com:0", "other machines"),
    ],
)
def test_an_address_that_is_refused(listen: str, said: str) -> None:
    async def main() -> None:
        async with serving(during_the_fault(), listen):
            raise AssertionError(listen)

    with pytest.raises(CannotListen, match=said):
        asyncio.run(main())


def test_an_address_that_is_taken_is_said() -> None:
    async def main() -> None:
        address = free_address()
        async with serving(during_the_fault(), address), serving(during_the_fault(), address):
            raise AssertionError(address)

    with pytest.raises(CannotListen, match=r"cannot be listened on: .*in use"):
        asyncio.run(main())


def test_the_port_that_was_chosen_is_told_and_without_a_wish_there_is_no_page() -> None:
    async def main() -> tuple[list[str], object]:
        said: list[str] = []
        async with (
            watched("127.0.0.1:0", None, MonotonicClock(), said.append),
            watched(None, None, MonotonicClock(), said.append) as nothing,
        ):
            return said, nothing

    (line,), nothing = asyncio.run(main())
    assert line.startswith("metrics on http://127.0.0.1:")
    assert (nothing, line.endswith(":0/metrics")) == (None, False)


def test_trouble_of_the_page_is_said_once_and_never_reaches_the_run() -> None:
    said: list[str] = []
    page = LivePage(MonotonicClock(), said.append)
    lines: list[str] = []
    with Overheard(Lines(lines.append), page.follow(plan())) as progress:
        for _ in range(3):
            progress.tell("gate", {"t": 1.0, "held": True})
            progress.tell("load_started", {"t": 1.0, "loads": ()})
    assert sum("users are served" in line for line in lines) == 3
    assert ["the metrics page has trouble, the run goes on: KeyError: 'at'"] == said


def test_a_page_that_cannot_be_drawn_is_a_500() -> None:
    page = during_the_fault()
    page._run.header = {"origin": "no number"}
    assert [500, 500] == [status for status, _, _ in serve(page, get("/metrics"), get("/annotations"))]


class Slow(MonotonicClock):
    """Every look at it takes a second: so long does it take to make an answer."""

    looks = 0.0

    def now(self) -> float:
        self.looks += 1.0
        return self.looks


def test_a_page_that_is_slow_to_make_is_made_again_only_after_a_rest() -> None:
    """However often somebody scrapes a run of many requests, its loop is not held up by it."""
    page = LivePage(Slow(), lambda _: None)
    tell = page.follow(plan())
    for kind, fields in told(Story(), INJECT):
        tell(kind, fields)
    first = page.answer("/metrics", "")
    tell("guard_tripped", {"t": INJECT, "guard": "success_ratio of chat over 5s"})
    assert [first] * 20 == [page.answer("/metrics", "") for _ in range(20)]
    for _ in range(REST * 10):
        latest = page.answer("/metrics", "")
    assert first != latest
