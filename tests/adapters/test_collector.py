"""Handing a document to a collector: what is tried again, for how long, and what is said in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from chaos.adapters.collector import deliver, endpoint_problem
from chaos.ports import HttpReply
from chaos.testing.clock import VirtualClock, run_virtual

DOCUMENT = {"resourceSpans": []}


@dataclass
class Collector:
    """Answers from a script, the last answer again and again; each call takes a tenth of a second."""

    clock: VirtualClock
    script: list[HttpReply]
    asked: list[tuple[str, Any, str | None]] = field(default_factory=list)

    async def call(
        self,
        method: str,
        url: str,
        json: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 2.0,
        token_file: str | None = None,
    ) -> HttpReply:
        assert timeout_s > 0
        self.asked.append((f"{method} {url}", json, token_file))
        await self.clock.sleep_until(self.clock.now() + 0.1)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def reply(status: int, body: str = "", **headers: str) -> HttpReply:
    return HttpReply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def delivered(*script: HttpReply, within_s: float = 10.0) -> tuple[str | None, Collector, float]:
    """What was said, what was asked, and how long it took."""

    async def main() -> tuple[str | None, Collector, float]:
        clock = VirtualClock()
        collector, began = Collector(clock, [*script]), clock.now()
        said = await deliver(collector, clock, "http://c:4318/", DOCUMENT, within_s=within_s, token_file="secret.token")
        return said, collector, clock.now() - began

    return run_virtual(main)


def test_a_document_goes_to_the_path_of_its_signal() -> None:
    said, collector, _ = delivered(reply(200, "{}"))
    assert (said, collector.asked) == (None, [("POST http://c:4318/v1/traces", DOCUMENT, "secret.token")])


def test_a_busy_collector_is_asked_again_as_late_as_it_wants() -> None:
    said, collector, took_s = delivered(reply(503, retry_after="3"), reply(200, "{}"))
    assert (said, len(collector.asked), round(took_s, 1)) == (None, 2, 3.2)


def test_a_collector_that_stays_busy_is_given_up_in_time() -> None:
    said, _, took_s = delivered(reply(429, '{"message": "too many"}'), within_s=2.0)
    assert said == "http://c:4318/v1/traces answered 429: too many"
    assert took_s <= 2.0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (reply(400, '{"code": 3, "message": "bad wire type"}'), "answered 400: bad wire type"),
        (reply(404, "not found\n"), "answered 404: not found"),
        (HttpReply(0, "", {}, "refused: nobody there"), "/v1/traces: refused: nobody there"),
        (
            reply(200, '{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}'),
            "rejected 2: too old",
        ),
    ],
)
def test_what_no_repetition_mends_is_said_at_once(answer: HttpReply, said: str) -> None:
    told, collector, _ = delivered(answer)
    assert told.endswith(said)
    assert len(collector.asked) == 1


@pytest.mark.parametrize("endpoint", ["http://localhost:4318", "https://otel.example.com/in", "http://[::1]:4318"])
def test_an_endpoint(endpoint: str) -> None:
    assert endpoint_problem(endpoint) is None


@pytest.mark.parametrize("endpoint", ["localhost:4318", "grpc://h:4317", "http://", "http://h:99999", ""])
def test_no_endpoint(endpoint: str) -> None:
    assert f"`{endpoint}` is not an endpoint" in endpoint_problem(endpoint)
