"""One try at one engine: POST, read its stream, and cut it when no token comes in time.

    start ──► first token in hand (`head`) ──► rest, frame by frame ──► finish

Before the first token the first-token limit holds, after it the inter-token limit; comments and empty deltas are not
progress. Closing the response closes the socket, which is how an engine learns that nobody listens any more.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import aiohttp

from target_stack.gateway.config import Upstream
from target_stack.gateway.events import Clock
from target_stack.gateway.policies.answers import AnswerSettings
from target_stack.gateway.policies.backoff import asked_pause_s
from target_stack.gateway.policies.deadline import TryBudget
from target_stack.gateway.policies.outlier import EngineLoad
from target_stack.gateway.retries import EngineFailure, failure_of_status
from target_stack.gateway.sse import Frame, Judge, SseParser, make_judge

_LAST_BYTES_S = 0.1
_WHOLE = AnswerSettings()
_LOAD = re.compile(r"^vllm:num_requests_(running|waiting)(?:\{[^}\n]*\})? (\S+)$", re.MULTILINE)
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
T = TypeVar("T")


def open_session() -> aiohttp.ClientSession:
    """A session for one upstream. Idle connections are dropped before uvicorn's five seconds, so that none is used as
    it closes.
    """
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0)
    timeout = aiohttp.ClientTimeout(total=None)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())


class EngineStream:
    """An answer under way. Not for two readers."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        *,
        budget: TryBudget,
        judge: Judge,
        clock: Clock,
        on_progress: Callable[[], None],
    ) -> None:
        self._response = response
        self._budget = budget
        self._judge = judge
        self._clock = clock
        self._on_progress = on_progress
        self._parser = SseParser()
        self._last_progress: float | None = None
        self._over = False
        self.head: list[Frame] = []
        self.prompt_tokens: int | None = None
        self.output_tokens = 0

    @property
    def whole(self) -> bool:
        """Whether it was read to its end, and that was one."""
        return self._over and self._judge.finished

    async def read_head(self) -> None:
        """Read up to the first token into `head`. The caller holds the time limit. Raises EngineFailure."""
        while self._last_progress is None and not self._over:
            self.head += await self._read()

    async def rest(self) -> AsyncIterator[list[Frame]]:
        """Frames after the head, as they come, without `[DONE]`. Raises EngineFailure."""
        while not self._over:
            yield await self._read_in_time()

    async def finish(self) -> None:
        """Give the connection back when the answer was read to its end, else close it."""
        try:
            if self.whole:
                async with asyncio.timeout(_LAST_BYTES_S):
                    while await self._response.content.readany():
                        pass
                self._response.release()
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass  # closed below, so the connection is not used again
        finally:
            self._response.close()  # also when the client, now with its whole answer, leaves and cancels us

    async def _read_in_time(self) -> list[Frame]:
        silent_until = (self._last_progress or self._clock()) + self._budget.inter_token_s
        try:
            async with asyncio.timeout_at(min(silent_until, self._budget.end_at)):
                return await self._read()
        except TimeoutError as problem:
            if self._judge.finished:
                # Everything was said; only the terminator is missing, and nobody should wait for that.
                self._over = True
                return []
            if silent_until <= self._budget.end_at:
                raise EngineFailure("stalled", "the engine stopped in the middle of its answer") from problem
            raise EngineFailure("too_slow", "the answer was not finished in time") from problem

    async def _read(self) -> list[Frame]:
        try:
            data = await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as problem:
            raise EngineFailure("truncated", "the connection to the engine broke during its answer") from problem
        if not data:
            self._end(done=False)
            return []
        frames = []
        for frame in self._parser.feed(data):
            if frame.done:
                self._end(done=True)
                break
            if self._judge.see(frame):
                self._last_progress = self._clock()
                self.output_tokens += 1
                self._on_progress()
            if frame.data is not None and (usage := frame.data.get("usage")):
                self._count(usage)
            if self._judge.passes(frame):
                frames.append(frame)
        return frames

    def _count(self, usage: Mapping[str, Any]) -> None:
        """The engine's own count is right; a frame that brings the answer on is a token as long as there is none."""
        self.prompt_tokens = usage.get("prompt_tokens")
        self.output_tokens = usage.get("completion_tokens", self.output_tokens)

    def _end(self, *, done: bool) -> None:
        self._over = True
        self._judge.ended(done=done)


class EngineClient:
    """Calls one engine. `answers` says what a whole answer is; `resends` is how often this client sends again by itself
    when the engine cannot be reached or answers 5xx: none, because retries belong to the dispatcher alone.
    """

    def __init__(
        self,
        upstream: Upstream,
        session: aiohttp.ClientSession,
        clock: Clock,
        *,
        answers: AnswerSettings = _WHOLE,
        resends: int = 0,
    ) -> None:
        self._answers = answers
        self._resends = resends
        self.name = upstream.name
        self.model = upstream.model
        self._url = upstream.url
        self._session = session
        self._clock = clock
        self._silent: set[asyncio.Timeout] = set()

    def give_up_waiting(self) -> None:
        """End every try that has no token yet, as its time limit would: the engine is known to be gone or frozen."""
        for limit in self._silent:
            if not limit.expired():  # one that has just run out belongs to a try that is about to be told
                limit.reschedule(self._clock())

    async def start(
        self,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        budget: TryBudget,
        *,
        choices: int = 1,
        on_progress: Callable[[], None] = lambda: None,
        on_resend: Callable[[], Mapping[str, str]] = lambda: _NO_HEADERS,
    ) -> EngineStream:
        """Ask, and return with the first token in hand; a resend has the headers of `on_resend` in place of the first
        ones. Raises EngineFailure.
        """
        limit = asyncio.timeout_at(budget.first_token_at)
        self._silent.add(limit)
        try:
            async with limit:
                response = await self._post_again(body, headers, budget, on_resend)
                judge = make_judge(self._answers, choices)
                stream = EngineStream(response, budget=budget, judge=judge, clock=self._clock, on_progress=on_progress)
                await _or_close(response, stream.read_head())
                return stream
        except TimeoutError as problem:
            if limit.when() == budget.first_token_at >= budget.end_at:
                # The caller's own deadline cut the wait short: that is no sign of a frozen engine.
                raise EngineFailure("too_slow", "the caller's deadline came before the first token") from problem
            raise EngineFailure("no_first_token", "the engine sent no token in time") from problem
        finally:
            self._silent.discard(limit)

    async def prefill(
        self, body: Mapping[str, Any], headers: Mapping[str, str], budget: TryBudget
    ) -> Mapping[str, Any]:
        """Have a prompt computed and held; by what a decode engine may fetch it. Raises EngineFailure."""
        limit = asyncio.timeout_at(budget.first_token_at)
        self._silent.add(limit)
        try:
            async with limit:
                response = await self._post(body, headers, budget)
                told = await _or_close(response, response.json())
            return dict(told["kv_transfer_params"])
        except TimeoutError as problem:
            raise EngineFailure("no_first_token", "the prefill engine did not answer in time") from problem
        except (aiohttp.ClientError, OSError) as problem:
            raise EngineFailure("truncated", "the connection to the prefill engine broke") from problem
        except (ValueError, TypeError, KeyError) as problem:
            raise EngineFailure("malformed", "the prefill engine gave no reference") from problem
        finally:
            self._silent.discard(limit)

    async def probe(self, timeout_s: float) -> bool:
        """Whether the engine produces one token within the time: the only proof that it is not frozen."""
        now = self._clock()
        budget = TryBudget(
            connect_at=now + timeout_s, first_token_at=now + timeout_s, end_at=now + timeout_s, inter_token_s=timeout_s
        )
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": "ping"}],
            "max_tokens": 1,
            "stream": True,
        }
        try:
            stream = await self.start(body, {}, budget)
        except EngineFailure:
            return False
        await stream.finish()
        return True

    async def reachable(self, timeout_s: float) -> bool:
        """False when the engine refuses, resets, or says that it is dead. Slowness is no sign of death, so no answer
        is True.
        """
        try:
            async with asyncio.timeout(timeout_s), self._session.get(f"{self._url}/ping") as reply:
                return reply.status != 503
        except TimeoutError:
            return True
        except (aiohttp.ClientError, OSError):
            return False

    async def load(self, timeout_s: float) -> EngineLoad | None:
        """The engine's own word on what it is doing; None without an answer. A frozen engine repeats its last word."""
        try:
            async with asyncio.timeout(timeout_s), self._session.get(f"{self._url}/metrics") as reply:
                return read_load(await reply.text()) if reply.status == 200 else None
        except (TimeoutError, aiohttp.ClientError, OSError):
            return None

    async def _post_again(
        self,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        budget: TryBudget,
        on_resend: Callable[[], Mapping[str, str]],
    ) -> aiohttp.ClientResponse:
        for _ in range(self._resends):
            try:
                return await self._post(body, headers, budget)
            except EngineFailure as failure:
                if failure.kind == "rejected":
                    raise
                headers = {**headers, **on_resend()}
        return await self._post(body, headers, budget)

    async def _post(
        self, body: Mapping[str, Any], headers: Mapping[str, str], budget: TryBudget
    ) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=max(0.001, budget.connect_at - self._clock()))
        try:
            response = await self._session.post(
                f"{self._url}/v1/chat/completions",
                data=json.dumps(body).encode(),
                headers={**headers, "content-type": "application/json"},
                timeout=timeout,
            )
        except (aiohttp.ClientError, OSError) as problem:
            raise EngineFailure("unreachable", "the engine cannot be reached") from problem
        if response.status != 200:
            raise await _or_close(response, _refusal(response))
        return response


def read_load(page: str) -> EngineLoad:
    """The two gauges of a vLLM /metrics page, summed over their label sets."""
    found = {"running": 0.0, "waiting": 0.0}
    for name, value in _LOAD.findall(page):
        found[name] += float(value)
    return EngineLoad(**found)


async def _refusal(response: aiohttp.ClientResponse) -> EngineFailure:
    try:
        body = await response.json(content_type=None)
    except (aiohttp.ClientError, OSError, ValueError):
        body = None
    response.release()
    message = f"the engine answered {response.status}"
    known = body if isinstance(body, dict) and "error" in body else None
    return EngineFailure(
        failure_of_status(response.status),
        message,
        status=response.status,
        body=known,
        retry_after_s=asked_pause_s(response.headers.get("Retry-After")),
    )


async def _or_close(response: aiohttp.ClientResponse, work: Awaitable[T]) -> T:
    try:
        return await work
    except BaseException:
        response.close()
        raise
