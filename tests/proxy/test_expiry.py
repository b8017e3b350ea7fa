"""A toxic may have an end of its own: it goes at its time, on every open connection, whoever asked for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chaos.proxy.api import Api
from chaos.proxy.collection import Collection
from chaos.proxy.http import Request
from chaos.proxy.metrics import Metrics
from chaos.proxy.proxy import Surroundings
from chaos.proxy.reactor import Reactor, Timer


class Timers(Reactor):
    """A loop that does not wait: a test moves its time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 100.0
        self.timers: list[Timer] = []

    def now(self) -> float:  # type: ignore[override]  # the real one is a static function
        return self.time

    def call_at(self, when: float, call: Any) -> Timer:
        self.timers.append(Timer(when, call))
        return self.timers[-1]

    def pass_(self, seconds: float) -> None:
        self.time += seconds
        for timer in [each for each in self.timers if each.when <= self.time]:
            self.timers.remove(timer)
            if timer.call:
                timer.call()


class Server:
    """The API over one proxy that is off."""

    def __init__(self, reactor: Timers) -> None:
        self.reactor = reactor
        counters = Metrics(proxy=False, runtime=False)
        self._api = Api(Collection(Surroundings(reactor, 1, False, counters.count)), counters)
        self.call(
            "POST", "/proxies", {"name": "p", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9", "enabled": False}
        )

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        reply = self._api.handle(Request(method, path, {}, json.dumps(body).encode(), keep_alive=True))
        return reply.status, json.loads(reply.body) if reply.body else None

    def names(self) -> list[str]:
        return [toxic["name"] for toxic in self.call("GET", "/proxies/p/toxics")[1]]


@pytest.fixture
def server() -> Iterator[Server]:
    reactor = Timers()
    yield Server(reactor)
    reactor.close()


@pytest.mark.parametrize("kind", ["latency", "noop", "sse_cut", "http_status"])
def test_any_toxic_may_expire(server: Server, kind: str) -> None:
    status, made = server.call("POST", "/proxies/p/toxics", {"type": kind, "name": "t", "expires_ms": 1500})
    assert (status, made["expires_ms"]) == (200, 1500)
    server.reactor.pass_(1.4)
    assert server.names() == ["t"]
    server.reactor.pass_(0.2)
    assert server.names() == []


def test_a_toxic_without_an_expiry_says_nothing_of_it_and_stays(server: Server) -> None:
    _, made = server.call("POST", "/proxies/p/toxics", {"type": "noop", "name": "t"})
    assert "expires_ms" not in made
    server.reactor.pass_(1e6)
    assert server.names() == ["t"]


def test_an_update_prolongs_or_ends_an_expiry_and_otherwise_leaves_it(server: Server) -> None:
    for name in ("longer", "never", "same"):
        server.call("POST", "/proxies/p/toxics", {"type": "noop", "name": name, "expires_ms": 1000})
    server.reactor.pass_(0.9)
    server.call("POST", "/proxies/p/toxics/longer", {"expires_ms": 1000})
    server.call("POST", "/proxies/p/toxics/never", {"expires_ms": 0})
    server.call("POST", "/proxies/p/toxics/same", {"toxicity": 0.5})
    server.reactor.pass_(0.9)
    assert server.names() == ["longer", "never"]
    server.reactor.pass_(0.2)
    assert server.names() == ["never"]


def test_a_toxic_that_was_removed_does_not_take_its_successor_with_it(server: Server) -> None:
    server.call("POST", "/proxies/p/toxics", {"type": "noop", "name": "t", "expires_ms": 1000})
    server.call("DELETE", "/proxies/p/toxics/t")
    server.call("POST", "/proxies/p/toxics", {"type": "noop", "name": "t"})
    server.reactor.pass_(2)
    assert server.names() == ["t"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"type": "sse_cut", "attributes": {"ending": "loud"}}, "ending 'loud' is none of close, reset, clean"),
        ({"type": "http_body", "attributes": {"body": "x"}}, "body 'x' is none of empty, html, broken_json"),
        ({"type": "http_status", "attributes": {"status": 99}}, "status 99 is not one of 200 to 599"),
        ({"type": "sse_stall", "stream": "upstream"}, "sse_stall harms answers, so its stream is downstream"),
    ],
)
def test_values_that_our_own_kinds_cannot_use_are_refused(server: Server, body: dict[str, Any], problem: str) -> None:
    assert server.call("POST", "/proxies/p/toxics", body) == (
        400,
        {"error": f"bad request body: {problem}", "status": 400},
    )
    assert server.names() == []


def test_a_setting_of_text_must_be_text(server: Server) -> None:
    status, answer = server.call("POST", "/proxies/p/toxics", {"type": "http_body", "attributes": {"body": 1}})
    assert (status, answer["error"]) == (
        400,
        (
            "bad request body: json: cannot unmarshal number into "
            "Go struct field HttpBodyToxic.attributes.body of type string"
        ),
    )


def test_a_refused_update_changes_nothing(server: Server) -> None:
    server.call("POST", "/proxies/p/toxics", {"type": "sse_cut", "name": "t", "attributes": {"after_events": 2}})
    status, _ = server.call("POST", "/proxies/p/toxics/t", {"attributes": {"after_events": 5, "ending": "loud"}})
    _, kept = server.call("GET", "/proxies/p/toxics/t")
    assert (status, kept["attributes"]["after_events"], kept["attributes"]["ending"]) == (400, 2, "close")
