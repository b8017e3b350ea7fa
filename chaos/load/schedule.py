"""One load, decided to the last byte before the run begins: when each request is due, what it asks, which trace it
belongs to. Pure.

Dice come from streams named after the load, so adding a second load changes nothing about the first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.load.arrivals import arrivals
from chaos.load.markers import marked
from chaos.load.personas import ClientBehaviour, behaviour_of
from chaos.load.prompts import Prompt, PromptError, lengthened
from chaos.ports import Entropy
from chaos.spec.model import Load

_PATHS = {
    "chat": "/v1/chat/completions",
    "rag": "/v1/rag",
    "embeddings": "/v1/embeddings",
    "agent": "/v1/agent",
    "ingest": "/v1/documents",
}
_KEYED = ("tools", "agent", "ingest")
_NEEDS = {"tools": "tool", "agent": "task"}


@dataclass(frozen=True)
class HttpRequest:
    """One request as it goes over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class PlannedRequest:
    """Request `number` of a load. `at_s` counts from the start of the load."""

    number: int
    at_s: float
    prompt: Prompt
    trace_id: str


@dataclass(frozen=True)
class LoadPlan:
    """All that one load will send."""

    load: Load
    behaviour: ClientBehaviour
    requests: tuple[PlannedRequest, ...]


def plan_load(
    load: Load,
    prompts: tuple[Prompt, ...],
    seed: int,
    entropy: Entropy,
    duration_s: float,
    *,
    baseline_s: float = 0.0,
) -> LoadPlan:
    """Lay out a load; a surge counts from `baseline_s` on. Raises PromptError when the prompts do not fit the route."""
    _check(load, prompts)
    choose = entropy.stream(f"prompts/{load.name}")
    due = arrivals(load, entropy.stream(f"arrivals/{load.name}"), duration_s, baseline_s=baseline_s)
    requests = tuple(
        PlannedRequest(number, at_s, choose.choice(prompts), trace_id_of(seed, load.name, number))
        for number, at_s in enumerate(due)
    )
    return LoadPlan(load, behaviour_of(load.client), requests)


def _check(load: Load, prompts: tuple[Prompt, ...]) -> None:
    wanted = _NEEDS.get(load.route, "question")
    for prompt in prompts:
        if not getattr(prompt, wanted):
            raise PromptError(
                f"load {load.name!r}: route {load.route} needs prompts with a `{wanted}`, {prompt.id} has none"
            )


def trace_id_of(seed: int, load: str, number: int) -> str:
    """W3C trace id of a request: 32 hexadecimal digits, the same in every run with this seed."""
    return hashlib.sha256(f"trace/{seed}/{load}/{number}".encode()).hexdigest()[:32]


def http_request(load: Load, request: PlannedRequest, attempt: int, run: str = "") -> HttpRequest:
    """The request of one attempt. A resend keeps the trace id and has a span and a request id of its own.

    A call to a tool, a task for an agent and a document to add carry an idempotency key, the same on every resend: what
    was accepted goes on without its client, so a resend must find it again. `run` tells runs of the same plan apart: a
    key, or the beginning of a long prompt, of an earlier run would be answered from memory.
    """
    span = hashlib.sha256(f"span/{request.trace_id}/{attempt}".encode()).hexdigest()[:16]
    path = f"/v1/tools/{request.prompt.tool}" if load.route == "tools" else _PATHS[load.route]
    keyed = {"idempotency-key": f"{request.trace_id}-{run}"} if load.route in _KEYED else {}
    return HttpRequest(
        method="POST",
        path=path,
        headers={
            **({"x-priority": load.priority} if load.priority != "interactive" else {}),
            "content-type": "application/json",
            "traceparent": f"00-{request.trace_id}-{span}-01",  # W3C Trace Context, version 00, sampled
            "x-request-id": f"{request.trace_id[:24]}-{attempt}",
            "x-stainless-retry-count": str(attempt - 1),  # as OpenAI's own SDKs tell that a request is a resend
            **keyed,
            **({"x-cache": "prefer"} if load.cache else {}),
        },
        body=json.dumps(_body(load, request, run), ensure_ascii=False).encode(),
    )


def _body(load: Load, request: PlannedRequest, run: str) -> Mapping[str, Any]:
    """OpenAI request shapes; usage is asked for, because the number of stream chunks is not the number of tokens."""
    prompt = request.prompt
    if load.route == "tools":
        return prompt.arguments
    if load.route == "agent":
        return {"kind": prompt.task, "goal": prompt.question}
    if load.route == "ingest":  # always marked: by its marker it is found again
        return {"text": marked(prompt.question, request.trace_id)}
    named = {} if load.model is None else {"model": load.model}
    if load.route == "embeddings":
        return {**named, "input": [prompt.question]}
    question = lengthened(prompt.question, load.prompt_words, f"{request.trace_id[:12]}-{run}")
    body = {
        **named,
        "messages": [{"role": "user", "content": marked(question, request.trace_id) if load.marked else question}],
        "max_tokens": load.max_tokens,
        "stream": load.stream,
    }
    return body | {"stream_options": {"include_usage": True}} if load.stream else body
