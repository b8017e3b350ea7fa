"""The routes: read, check, ask the parts, write. No policy is decided here."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from target_stack.gateway.assemble import Assembler
from target_stack.gateway.call import Call
from target_stack.gateway.dependency import DependencyDown
from target_stack.gateway.drain import REASON, CutShort
from target_stack.gateway.errors import GatewayError, bad_request, error_frame, error_reply, unavailable
from target_stack.gateway.fallback import Answer
from target_stack.gateway.metrics import CONTENT_TYPE
from target_stack.gateway.policies.deadline import HEADER, Deadline
from target_stack.gateway.policies.retry_budget import RESEND_HEADER, is_resend
from target_stack.gateway.request_record import RequestRecord
from target_stack.gateway.requests import (
    BODY_BYTES_MAX,
    ChatRequest,
    chat_request,
    check_embeddings_input,
    deadline_ms,
    json_object,
    priority_of,
)
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.serving import Asked, served
from target_stack.gateway.sse import DONE
from target_stack.gateway.trace import trace_of
from target_stack.gateway.watching import watched
from target_stack.gateway.wiring import Gateway
from target_stack.spans import ROUTE as SPANS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
GATEWAY = web.AppKey("gateway", Gateway)
_RECORD = web.RequestKey("record", RequestRecord)
_OUTCOME = web.RequestKey("outcome", str)
_TOOL = re.compile(r"[a-z][a-z0-9_]{0,63}")
_COUNTED = ("chat", "rag", "embeddings", "tools", "agent", "ingest")


def make_app(gateway: Gateway) -> web.Application:
    """The application. Run it with handler_cancellation=True, or a client that leaves stops nothing."""
    app = web.Application(middlewares=[_frame_of_every_request], client_max_size=BODY_BYTES_MAX)
    app[GATEWAY] = gateway
    app.add_routes(
        [
            web.post("/v1/chat/completions", _chat, name="chat"),
            web.post("/v1/rag", _rag, name="rag"),
            web.post("/v1/embeddings", _embeddings, name="embeddings"),
            web.post("/v1/tools/{tool}", _tool, name="tools"),
            web.post("/v1/agent", _agent, name="agent"),
            web.post("/v1/documents", _ingest, name="ingest"),
            web.get("/v1/models", _models),
            web.get("/v1/models/{model}", _model),
            web.get("/health", _health),
            web.get("/ping", _ping),
            web.get("/metrics", _metrics),
            web.get("/debug/events", _events),
            web.get(SPANS, _spans),
        ]
    )
    return app


@web.middleware
async def _frame_of_every_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors in OpenAI's shape, a trace id on every reply, and the count of what became of the request."""
    gateway = request.app[GATEWAY]
    route = request.match_info.route.name
    if route not in _COUNTED:
        return await _in_openai_shape(request, handler)
    record = gateway.telemetry.began(trace_of(request.headers, gateway.telemetry.rng), route)
    request[_RECORD], request[_OUTCOME] = record, "client_gone"  # holds when the handler is cancelled
    try:
        with gateway.drain.request():
            response = await _in_openai_shape(request, handler)
            record.answered(response.status, response.headers)
            return response
    finally:
        gateway.telemetry.ended(record, request[_OUTCOME])


async def _in_openai_shape(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except GatewayError as error:
        problem = error
    except web.HTTPRequestEntityTooLarge:
        problem = bad_request(f"the body is larger than {BODY_BYTES_MAX} bytes", status=413)
    except web.RequestPayloadError as error:
        problem = bad_request(f"the body is not what its headers say: {error}")
    except web.HTTPException as error:
        problem = bad_request(f"{request.method} {request.path}: {error.reason}", status=error.status)
    request[_OUTCOME] = _outcome_of(problem)
    if _RECORD in request:
        problem.headers.setdefault("x-trace-id", request[_RECORD].trace.trace_id)
    return error_reply(problem)


def _outcome_of(error: GatewayError) -> str:
    if "x-shed-reason" in error.headers:
        return "shed"
    return "rejected" if error.status < 500 else "error"


async def _chat(request: web.Request) -> web.StreamResponse:
    call, ask = await _read_ask(request)
    return await _answer(request, ask, call, retrieve=False)


async def _rag(request: web.Request) -> web.StreamResponse:
    call, ask = await _read_ask(request)
    ask.question()  # refuse now what could not be looked up
    return await _answer(request, ask, call, retrieve=True)


async def _read_ask(request: web.Request) -> tuple[Call, ChatRequest]:
    config = request.app[GATEWAY].config
    ask = chat_request(await request.read(), config.model).in_form(config.policies.prompt)
    return _begin(request, config.policies.deadline.total_s, ask.work()), ask


def _begin(request: web.Request, limit_s: float, work: int = 0) -> Call:
    """Start on a request of so many tokens of work; a client's own resend is paid from the budget of all retries."""
    gateway = request.app[GATEWAY]
    if gateway.drain.closed:
        raise gateway.drain.refusal()
    resend = is_resend(request.headers.get(RESEND_HEADER))
    if resend and not gateway.budget.take_retry(work):
        raise gateway.admission.refuse("retry_budget")
    now = gateway.telemetry.clock()
    return Call(
        trace=request[_RECORD].trace,
        arrived=now,
        deadline=Deadline.of(now, limit_s, deadline_ms(request.headers.get(HEADER))),
        priority=priority_of(request.headers.get("x-priority")),
        resend=resend,
        record=request[_RECORD],
    )


async def _answer(request: web.Request, ask: ChatRequest, call: Call, *, retrieve: bool) -> web.StreamResponse:
    gateway = request.app[GATEWAY]
    call.record.priority, call.record.wants_counts = call.priority, ask.wants_counts
    asked = Asked(ask, call, request.headers, retrieve, gateway.releases.turn(ask, call))
    async with served(gateway, asked) as answer:
        headers = {"x-trace-id": call.trace_id, **answer.headers}
        gateway.telemetry.metrics.ttft.observe(gateway.telemetry.clock() - call.arrived)
        send = _send_stream if ask.stream else _send_reply
        return await send(request, answer.answer, headers)


async def _send_stream(request: web.Request, answer: Answer, headers: dict[str, str]) -> web.StreamResponse:
    gateway, response = request.app[GATEWAY], web.StreamResponse(headers=headers)
    response.content_type, response.charset = "text/event-stream", "utf-8"
    outcome = "degraded" if "x-degraded" in headers else "ok"
    try:
        await response.prepare(request)
        try:
            async with gateway.drain.bounded():
                async for frames in watched(answer, request[_RECORD], gateway.telemetry, streamed=True):
                    if frames:
                        await response.write(b"".join([frame.raw for frame in frames]))
            last = DONE
        except EngineFailure as failure:
            outcome, last = "broken", error_frame(str(failure), failure.kind)
        except CutShort as cut:
            outcome, last = "broken", error_frame(str(cut), REASON)
        await response.write_eof(last)
    except ConnectionError:
        await gateway.when_client_is_gone(answer)
        return response  # the outcome stays client_gone, and closing the answer stops the engine
    request[_OUTCOME] = outcome
    return response


async def _send_reply(request: web.Request, answer: Answer, headers: dict[str, str]) -> web.StreamResponse:
    assembler = Assembler()
    async for frames in watched(answer, request[_RECORD], request.app[GATEWAY].telemetry, streamed=False):
        for frame in frames:
            if frame.data is not None:
                assembler.add(frame.data)
    request[_OUTCOME] = "degraded" if "x-degraded" in headers else "ok"
    return web.json_response(assembler.reply(), headers=headers)


async def _embeddings(request: web.Request) -> web.StreamResponse:
    gateway = request.app[GATEWAY]
    call = _begin(request, gateway.config.policies.deadline.embeddings_s)
    body = json_object(await request.read())
    check_embeddings_input(body)
    if gateway.embedder is None:
        raise unavailable("embedder", "not_configured", status=501)
    dependency, http = gateway.embedder
    ask = gateway.repeater.call(dependency, call, lambda hop: http.post("/v1/embeddings", body, hop), idempotent=True)
    return await _forward(request, "embedder", call, ask)


async def _tool(request: web.Request) -> web.StreamResponse:
    gateway = request.app[GATEWAY]
    call = _begin(request, gateway.config.policies.deadline.tool_s)
    name = request.match_info["tool"]
    if not _TOOL.fullmatch(name):
        raise bad_request(f"there is no tool named {name!r}", "tool", status=404)
    body = json_object(await request.read())
    if gateway.tools is None:
        raise unavailable("tool", "not_configured", status=501)
    return await _forward(
        request, "tool", call, gateway.tools.use(call, name, body, request.headers.get("idempotency-key"))
    )


async def _agent(request: web.Request) -> web.StreamResponse:
    """A task for the agents, waited for as long as the deadline leaves; the same key finds the same task again."""
    gateway = request.app[GATEWAY]
    call = _begin(request, gateway.config.policies.deadline.agent_s)
    body = {"wait_s": gateway.config.policies.deadline.agent_s, **json_object(await request.read())}
    if gateway.agents is None:
        raise unavailable("agent", "not_configured", status=501)
    dependency, http = gateway.agents
    key = request.headers.get("idempotency-key", call.trace_id)
    ask = gateway.repeater.call(
        dependency, call, lambda hop: http.post("/v1/agent/tasks", body, hop, key), idempotent=True
    )
    return await _forward(request, "agent", call, ask)


async def _ingest(request: web.Request) -> web.StreamResponse:
    """A document that a user adds; the same key adds it once."""
    gateway = request.app[GATEWAY]
    call = _begin(request, gateway.config.policies.ingest.limit_s)
    body = json_object(await request.read())
    if gateway.ingest is None:
        raise unavailable("vector-store", "not_configured", status=501)
    key = request.headers.get("idempotency-key", call.trace_id)
    return await _forward(request, "vector-store", call, gateway.ingest.add(call, body, key))


async def _forward(
    request: web.Request, dependency: str, call: Call, asked: Awaitable[tuple[int, Any]]
) -> web.StreamResponse:
    try:
        status, reply = await asked
    except DependencyDown as down:
        raise unavailable(down.dependency, down.reason, status=504 if down.reason == "timeout" else 503) from down
    lacks = reply.get("degraded") if isinstance(reply, dict) and status < 400 else None
    headers = {"x-degraded": ",".join(lacks)} if lacks else {}
    request[_OUTCOME] = "rejected" if status >= 400 else "degraded" if lacks else "ok"
    headers |= {"x-trace-id": call.trace_id, "x-served-by": dependency}
    return web.json_response(reply, status=status, headers=headers)


async def _models(request: web.Request) -> web.StreamResponse:
    return web.json_response({"object": "list", "data": [_card(request.app[GATEWAY].config.model)]})


async def _model(request: web.Request) -> web.StreamResponse:
    asked, model = request.match_info["model"], request.app[GATEWAY].config.model
    if asked != model:
        raise bad_request(f"The model `{asked}` does not exist. Valid names: {model}", "model", status=404)
    return web.json_response(_card(model))


def _card(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "brownout"}


async def _health(request: web.Request) -> web.StreamResponse:
    able = request.app[GATEWAY].able()
    return web.json_response({"status": "ok" if able else "unavailable"}, status=200 if able else 503)


async def _ping(request: web.Request) -> web.StreamResponse:  # noqa: ARG001  # aiohttp's handler signature
    return web.Response(text="pong")


async def _metrics(request: web.Request) -> web.StreamResponse:
    text = request.app[GATEWAY].telemetry.metrics.text()
    return web.Response(body=text.encode(), headers={"content-type": CONTENT_TYPE})


async def _events(request: web.Request) -> web.StreamResponse:
    after = request.query.get("after", "0")
    if not after.isdecimal():
        raise bad_request("after must be a sequence number", "after")
    document = request.app[GATEWAY].telemetry.events.after(int(after))
    return web.Response(text=json.dumps(document), content_type="application/json")


async def _spans(request: web.Request) -> web.StreamResponse:
    status, page = request.app[GATEWAY].telemetry.spans.page(request.query.get("after"))
    return web.Response(text=page, status=status, content_type="application/json")
