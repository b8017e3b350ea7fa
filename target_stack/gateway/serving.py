"""One chat request from the door to its answer: a kept one, one that is under way for another, or one of its own.

    alone:   admission ─► retrieval ─► chain
    flight:  join ─► admission ─► retrieval ─► chain
    cache:   join ─► look ─► admission ─► retrieval ─► chain ─► keep

A look and a flight come before admission: who needs no engine waits in no line for one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from target_stack.gateway.assemble import Assembler
from target_stack.gateway.cache.answers import Looked
from target_stack.gateway.cache.flights import OutOfTime, Served
from target_stack.gateway.cache.index import Entry
from target_stack.gateway.cache.kept import KeptAnswer
from target_stack.gateway.call import Call
from target_stack.gateway.dependency import DependencyDown
from target_stack.gateway.errors import GatewayError, bad_request
from target_stack.gateway.fallback import Answer
from target_stack.gateway.policies.caching import HEADER, Identity, Use, identity_of, use_of
from target_stack.gateway.policies.deadline import Deadline
from target_stack.gateway.policies.prompt_form import in_order
from target_stack.gateway.releases import HEADER as RELEASE_HEADER
from target_stack.gateway.releases import Turn
from target_stack.gateway.requests import ChatRequest
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.sse import Frame
from target_stack.gateway.wiring import Gateway


@dataclass(frozen=True)
class Asked:
    """A chat request as it came, with what `headers` say of its user, whether it is answered over documents, and the
    release that it gets.
    """

    ask: ChatRequest
    call: Call
    headers: Mapping[str, str]
    retrieve: bool
    turn: Turn

    @cached_property
    def identity(self) -> Identity | None:
        """What makes another request the same as this one."""
        way = ("rag" if self.retrieve else "chat", self.turn.release.fingerprint)
        return identity_of(way, self.ask.fields, self.headers)

    @cached_property
    def use(self) -> Use:
        """With what it may be served. Raises GatewayError."""
        try:
            use = use_of(self.ask.fields, self.headers.get(HEADER))
        except ValueError as problem:
            raise bad_request(str(problem), HEADER) from problem
        return use if use == "alone" or self.identity else "alone"

    @property
    def flight(self) -> tuple[str, ...]:
        """Key of the flight that serves it: as its identity, delivered in the same way, in the same line."""
        fields, key = self.ask.fields, self.identity.key if self.identity else ""
        return key, self.use, self.call.priority, str(self.ask.stream), json.dumps(fields.get("stream_options"))


@asynccontextmanager
async def served(gateway: Gateway, asked: Asked) -> AsyncIterator[Served]:
    """The answer to a request; leaving frees all that it held. Raises GatewayError."""
    if asked.use == "alone":
        gateway.telemetry.metrics.cache_requests.add("off")
        async with _made(gateway, asked) as answer:
            yield answer
        return
    if gateway.config.policies.single_flight.kind == "none":
        async with _kept_or_made(gateway, asked) as answer:
            yield answer
        return
    # A flight has the whole time, whatever its first listener leaves: later ones may have more.
    deadline = Deadline.of(gateway.telemetry.clock(), gateway.config.policies.deadline.total_s)
    flown = replace(asked, call=replace(asked.call, deadline=deadline))
    try:
        async with gateway.flights.join(
            asked.flight, lambda: _kept_or_made(gateway, flown), asked.call.deadline.at
        ) as (answer, follows):
            if follows and answer.headers.get(HEADER) in (None, "miss"):
                answer.headers[HEADER] = "shared"
            yield answer
    except OutOfTime:
        said, steps_down = gateway.chain.last_words(asked.call)
        yield Served(said, {"x-served-by": said.served_by, "x-degraded": ",".join(steps_down)})


@asynccontextmanager
async def _kept_or_made(gateway: Gateway, asked: Asked) -> AsyncIterator[Served]:
    looked = await _look(gateway, asked)
    if looked.answer:
        yield Served(looked.answer, {**_kept_headers(looked.answer), HEADER: looked.result})
        return
    async with _made(gateway, asked, looked.entry) as made:
        recorded = _Recorded(made.answer)
        yield Served(recorded, {**made.headers, HEADER: looked.result} if asked.use == "cache" else made.headers)
    await _keep(gateway, asked, looked, Served(recorded, made.headers))


async def _look(gateway: Gateway, asked: Asked) -> Looked:
    if gateway.answers is None or asked.use != "cache" or asked.identity is None:
        gateway.telemetry.metrics.cache_requests.add("off")
        return Looked("miss")
    looked = await gateway.answers.look(asked.identity, asked.call)
    gateway.telemetry.metrics.cache_requests.add(looked.result)
    return looked


async def _keep(gateway: Gateway, asked: Asked, looked: Looked, answer: Served) -> None:
    """Keep what came out whole and undegraded; what could not be looked up cannot be kept either."""
    wanted = gateway.answers is not None and asked.use == "cache" and looked.result == "miss"
    if not wanted or "x-degraded" in answer.headers or not isinstance(answer.answer, _Recorded):
        return
    reply = answer.answer.reply
    if gateway.answers and asked.identity and reply:
        record = gateway.answers.record(reply, answer.headers.get("x-documents"), looked.entry)
        if record:
            await gateway.answers.keep(asked.identity, record, asked.call)


@asynccontextmanager
async def _made(gateway: Gateway, asked: Asked, entry: Entry | None = None) -> AsyncIterator[Served]:
    """An answer made now, inside the admission limit. `entry` holds the question's vector where it is known already."""
    call, turn = asked.call, asked.turn
    async with gateway.doors.arrival.slot(call.priority, call.deadline.at):
        gateway.telemetry.admitted(call.record)
        with turn:
            async with gateway.drain.bounded():
                headers, ask = await _with_documents(gateway, asked, entry)
                answer, steps_down = await _first_answer(gateway, asked, ask)
            degraded = [*filter(None, [headers.pop("x-degraded", "")]), *steps_down]
            if isinstance(answer, KeptAnswer):
                headers |= _kept_headers(answer)
            headers["x-served-by"] = answer.served_by
            if not steps_down:
                headers[RELEASE_HEADER] = turn.release.name
            if degraded:
                headers["x-degraded"] = ",".join(degraded)
            turn.first_token(gateway.telemetry.clock(), own=not steps_down)
            try:
                async with gateway.doors.first_token.slot(call.priority, call.deadline.at):
                    yield Served(_Watched(answer, turn), headers)
            finally:
                await answer.close()


async def _with_documents(gateway: Gateway, asked: Asked, entry: Entry | None) -> tuple[dict[str, str], ChatRequest]:
    """The headers that tell about retrieval, and the request with what was found."""
    ask = asked.turn.ask
    if not asked.retrieve:
        return {}, ask
    known: list[float] | None = list(entry.vector) if entry else None
    try:
        documents = await gateway.retrieval.documents(ask.question(), asked.call, known)
    except DependencyDown:
        return {"x-degraded": "no_retrieval"}, ask
    shown = in_order(gateway.config.policies.prompt, documents)
    return {"x-documents": ",".join(name for name, _ in documents)}, ask.with_context(shown)


async def _first_answer(gateway: Gateway, asked: Asked, ask: ChatRequest) -> tuple[Answer, tuple[str, ...]]:
    async def kept() -> KeptAnswer | None:
        if gateway.answers is None or asked.identity is None:
            return None
        return await gateway.answers.look_in_need(asked.identity, asked.call)

    try:
        return await gateway.chain.answer(ask, asked.call, kept)
    except EngineFailure as failure:
        if failure.body is None:
            raise bad_request("the engine refused the request", status=failure.status) from failure
        raise GatewayError.passed_on(failure.status, failure.body) from failure


def _kept_headers(answer: KeptAnswer) -> dict[str, str]:
    documents = {} if answer.documents is None else {"x-documents": answer.documents}
    return {"x-served-by": answer.served_by, "age": str(round(answer.age_s)), **documents}


class _Watched:
    """An answer that shows its release what it is like."""

    def __init__(self, answer: Answer, turn: Turn) -> None:
        self._answer = answer
        self._turn = turn
        self.served_by = answer.served_by

    async def frames(self) -> AsyncIterator[list[Frame]]:
        async for batch in self._answer.frames():
            yield batch
            self._turn.passed(batch)
        self._turn.whole()

    async def close(self) -> None:
        """Whoever made the answer closes it."""


class _Recorded:
    """An answer that remembers itself while it is read. `reply` is the whole of it, once it came whole."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.served_by = answer.served_by
        self.reply: dict[str, object] | None = None

    async def frames(self) -> AsyncIterator[list[Frame]]:
        assembler = Assembler()
        async for batch in self._answer.frames():
            for frame in batch:
                if frame.data is not None:
                    assembler.add(frame.data)
            yield batch
        self.reply = assembler.reply()

    async def close(self) -> None:
        """Whoever made the answer closes it."""
