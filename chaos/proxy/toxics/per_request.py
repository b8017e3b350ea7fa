"""Toxics that know HTTP: they choose single requests and harm the answer to each in one way.

A byte toxic is active on a connection or not; here every request throws its own dice. What happens to one answer is a
`Harm`: a sans-IO value that is made when the request is chosen and dies with the answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs

from chaos.proxy.toxics.stub import Item, Plain, Stub
from chaos.proxy.traffic.messages import End as MessageEnd
from chaos.proxy.traffic.messages import Head, Part
from chaos.settings import setting

Steps = Iterable[tuple[float, Item]]
"""(seconds to wait first, item), one after the other."""

OBSERVER = "brownout-observer"
"""Query parameter of a request that a toxic of that name always hits: an observer needs no luck to see the harm."""


@dataclass(frozen=True)
class Reply:
    """An answer given in the upstream's place."""

    status: int
    content_type: str = ""
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Harm:
    """What is done to one answer; by itself nothing. `requests` and `events` count what it has really done so far."""

    def __init__(self) -> None:
        self.requests = 0
        self.events = 0

    def reply(self) -> Reply | None:
        """An answer that makes the upstream unnecessary: the request is then not passed on."""
        return None

    def applies(self, _answer: Head, /) -> bool:
        """Whether this answer is of the kind that is harmed. `part` is called only if so."""
        return False

    def part(self, part: Part, /) -> Steps:
        """What becomes of one part of the answer, from its head to its end."""
        return ((0, part.raw),)

    @property
    def holds_framing(self) -> bool:
        """Whether the rest of this answer cannot be passed on as it comes."""
        return False

    def retire(self) -> None:
        """The toxic was removed: do no more."""

    def hit(self) -> None:
        """The harm has happened."""
        self.requests = 1


@dataclass
class PerRequest(Plain):
    """Settings that all share. An empty match matches all."""

    kind: ClassVar[str] = ""
    go_name: ClassVar[str] = ""
    match_path: str = setting("only requests whose path begins so; empty for all", default="")
    match_header: str = setting("only requests with this header: `name` or `name: value`; empty for all", default="")
    match_trace: str = setting("only requests of this trace id (traceparent, x-trace-id); empty for all", default="")
    match_model: str = setting("only requests whose JSON body asks for this model; empty for all", default="")
    match_tool: str = setting("only MCP calls of this tool; empty for all", default="")
    answers_by_body: ClassVar[bool] = False  # the harm is made from the body, so that each needs it

    def harm(self) -> Harm:
        """A fresh one for a chosen request."""
        return Harm()

    def harm_to(self, _body: bytes, /) -> Harm:
        """A fresh one for a request that was chosen when its body had come."""
        return self.harm()

    @property
    def chooses_by_body(self) -> bool:
        """Whether the head alone does not tell."""
        return bool(self.match_model or self.match_tool)

    def stub(self, _dice: random.Random, /) -> Stub:
        """One direction alone tells nothing of requests, so without its exchange it passes everything on."""
        return Stub()

    def matches(self, request: Head) -> bool:
        """Whether it is one of those that the settings describe, as far as its head can tell."""
        name, _, value = (piece.strip() for piece in self.match_header.partition(":"))
        found = request.headers.get(name.lower()) if name else ""
        header_fits = found is not None and (not value or found == value)
        trace_fits = not self.match_trace or self.match_trace in _traces(request)
        return header_fits and trace_fits and request.target.startswith(self.match_path)

    def matches_body(self, body: bytes) -> bool:
        """Whether a request with this body is one of those. Asked only where the body chooses."""
        asked = asked_in(body)
        model_fits = not self.match_model or asked.get("model") == self.match_model
        return model_fits and (not self.match_tool or called_tool(asked) == self.match_tool)


def asked_in(body: bytes) -> Mapping[str, Any]:
    """The JSON object that a request holds; an empty one if it holds none."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return asked if isinstance(asked, dict) else {}


def called_tool(asked: Mapping[str, Any]) -> str | None:
    """The tool that an MCP request calls (JSON-RPC, `tools/call`); None for any other request."""
    params = asked.get("params")
    if asked.get("method") != "tools/call" or not isinstance(params, dict):
        return None
    return str(params.get("name"))


def _traces(request: Head) -> tuple[str, ...]:
    """The trace ids that a request names: W3C Trace Context (`00-TRACE-SPAN-FLAGS`) and the plain header."""
    return (*request.headers.get("traceparent", "").split("-")[1:2], request.headers.get("x-trace-id", ""))


def names_toxic(request: Head, toxic: str) -> bool:
    """Whether an observer asks for this very toxic."""
    query = request.target.partition("?")[2]
    return OBSERVER in query and toxic in parse_qs(query).get(OBSERVER, ())


def is_end(part: Part) -> bool:
    """Whether the message is over with this part."""
    return isinstance(part, MessageEnd)
