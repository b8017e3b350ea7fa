"""What a client may ask, checked before anything reaches an engine; and the form in which it is asked of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from target_stack.gateway.errors import bad_request
from target_stack.gateway.policies.deadline import HEADER, asked_ms
from target_stack.gateway.policies.prompt_form import PromptSettings, in_form
from target_stack.gateway.policies.queue import Priority
from target_stack.gateway.policies.release import Release
from target_stack.gateway.prompts import FIRST_CODE, RAG_SYSTEM

BODY_BYTES_MAX = 1 << 20
_ROLES = ("system", "developer", "user", "assistant", "tool")
_USUAL_ANSWER_TOKENS = 256  # counted for a request that sets no bound of its own
_NUMBERS: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
_COUNTS: Mapping[str, tuple[int, int]] = {
    "max_tokens": (1, 1 << 20),
    "max_completion_tokens": (1, 1 << 20),
    "min_tokens": (0, 1 << 20),
    "top_logprobs": (0, 20),
    "n": (1, 16),
}
_KINDS: Mapping[str, tuple[type, str]] = {
    "logprobs": (bool, "true or false"),
    "parallel_tool_calls": (bool, "true or false"),
    "tools": (list, "a list"),
    "logit_bias": (dict, "an object"),
    "response_format": (dict, "an object"),
    "metadata": (dict, "an object"),
    "user": (str, "a text"),
}
_SEEDS = range(-(1 << 63), 1 << 63)
_DEEPEST = 64  # levels of nesting; what is deeper is an attack on whoever reads it next


@dataclass(frozen=True)
class ChatRequest:
    """A checked chat request; `fields` is the whole body as it came. `code` and `model` are those of the release that
    answers it; without one every engine is asked for its own model.
    """

    fields: Mapping[str, Any]
    stream: bool
    choices: int
    code: str = FIRST_CODE
    model: str | None = None

    def under(self, release: Release, model: str | None) -> ChatRequest:
        """The same request as this release asks it of an engine; `model` is what engines call the release's model."""
        said = release.config.said
        fields = {**self.fields, **_defaults(self.fields, said)} if said else self.fields
        return replace(self, fields=fields, code=release.code, model=model)

    def in_form(self, settings: PromptSettings) -> ChatRequest:
        """The same request with its messages in the one form that engines know again."""
        return replace(self, fields={**self.fields, "messages": in_form(settings, self.fields["messages"])})

    def work(self) -> int:
        """Tokens it may cost an engine at most: those of the prompt (some four characters each) and of the answers."""
        prompt = sum(len(text_of(message)) for message in self.fields["messages"]) // 4
        asked = self.fields.get("max_completion_tokens") or self.fields.get("max_tokens") or _USUAL_ANSWER_TOKENS
        return prompt + self.choices * int(asked)

    @property
    def wants_counts(self) -> bool:
        """Whether the reply must count its tokens: a stream does so only when asked."""
        return not self.stream or bool((self.fields.get("stream_options") or {}).get("include_usage"))

    def question(self) -> str:
        """Text of the last user message. Raises GatewayError when there is none."""
        for place, message in reversed(list(enumerate(self.fields["messages"]))):
            if message["role"] == "user" and (text := text_of(message)):
                return text
            if message["role"] == "user":
                raise bad_request("the last user message has no text to look up", f"messages[{place}].content")
        raise bad_request("a user message is needed to look up documents", "messages")

    def with_context(self, documents: Sequence[tuple[str, str]]) -> ChatRequest:
        """The same request with the last user message in the form that engines know for retrieval."""
        messages = list(self.fields["messages"])
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        context = "\n".join(f"[{name}] {body}" for name, body in documents)
        content = f"Context:\n{context}\n\nQuestion: {self.question()}"
        messages[last] = {"role": "user", "content": content}
        fields = {**self.fields, "messages": [{"role": "system", "content": RAG_SYSTEM[self.code]}, *messages]}
        return replace(self, fields=fields)

    def upstream(self, own_model: str) -> dict[str, Any]:
        """The body for an engine: always a stream, and always with the tokens counted at its end."""
        options = {**(self.fields.get("stream_options") or {}), "include_usage": True}
        return {**self.fields, "stream": True, "stream_options": options, "model": self.model or own_model}


def _defaults(asked: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Any]:
    """What the release says where the client said nothing."""
    said = dict(release)
    system_prompt = said.pop("system_prompt", None)
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens")
    if limit is not None:
        said.pop("max_tokens", None)
        if "min_tokens" in said:
            said["min_tokens"] = min(said["min_tokens"], limit)
    fields = {key: value for key, value in said.items() if asked.get(key) is None}
    if system_prompt is not None and asked["messages"][0]["role"] not in ("system", "developer"):
        fields["messages"] = [{"role": "system", "content": system_prompt}, *asked["messages"]]
    return fields


def text_of(message: Mapping[str, Any]) -> str:
    """Text of a message, whether a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content.strip()
    parts = content or ()
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str)).strip()


def json_object(body: bytes) -> dict[str, Any]:
    """A body as a JSON object that the next hop can read as well. Raises GatewayError."""
    try:
        fields = json.loads(body, parse_constant=_no_number)
        if b"\\u" in body:  # an escape can smuggle in half a surrogate pair, which no UTF-8 could carry
            json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        raise bad_request(f"the body is not valid JSON: {problem}") from problem
    if not isinstance(fields, dict):
        raise bad_request("the body must be a JSON object")
    if body.count(b"[") + body.count(b"{") > _DEEPEST and _is_deeper(fields, _DEEPEST):
        raise bad_request(f"the body is nested deeper than {_DEEPEST} levels")
    return fields


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _is_deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def chat_request(body: bytes, model: str) -> ChatRequest:
    """Check a chat body; `model` is the only one that is served. Raises GatewayError."""
    fields = json_object(body)
    _check_model(fields, model)
    _check_messages(fields)
    stream = fields.get("stream") or False
    if not isinstance(stream, bool):
        raise bad_request("stream must be true or false", "stream")
    _check_stream_options(fields, stream=stream)
    for key, (least, most) in _NUMBERS.items():
        _check_number(fields, key, least, most)
    for key, (fewest, most_of_all) in _COUNTS.items():
        _check_number(fields, key, fewest, most_of_all, whole=True)
    _check_kinds(fields)
    _check_lengths(fields)
    return ChatRequest(fields, stream, fields.get("n") or 1)


def check_embeddings_input(fields: Mapping[str, Any]) -> None:
    """A text, tokens, or a list of either. Raises GatewayError."""
    asked = fields.get("input")
    if not asked:
        raise bad_request("input is required", "input")
    texts = asked if isinstance(asked, list) else [asked]
    if not all(isinstance(each, str | int | list) and not isinstance(each, bool) for each in texts):
        raise bad_request("input must be a text, a list of texts, or tokens", "input")


def priority_of(header: str | None) -> Priority:
    """Class of a request from `x-priority`. Raises GatewayError."""
    if header in (None, "", "interactive"):
        return "interactive"
    if header == "batch":
        return "batch"
    raise bad_request("x-priority must be interactive or batch", "x-priority")


def deadline_ms(header: str | None) -> float | None:
    """Milliseconds that the caller leaves. Raises GatewayError."""
    try:
        return asked_ms(header)
    except ValueError as problem:
        raise bad_request(f"{HEADER} must be a positive number of milliseconds", HEADER) from problem


def _check_model(fields: Mapping[str, Any], model: str) -> None:
    """One model is served here, so a caller may leave the name out, as with vLLM."""
    asked = fields.get("model", model)
    if not isinstance(asked, str) or not asked:
        raise bad_request("model must be a string", "model")
    if asked != model:
        raise bad_request(f"The model `{asked}` does not exist. Valid names: {model}", "model", status=404)


def _check_messages(fields: Mapping[str, Any]) -> None:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages is required and must be a list with at least one message", "messages")
    for place, message in enumerate(messages):
        _check_message(message, f"messages[{place}]")


def _check_message(message: Any, where: str) -> None:
    if not isinstance(message, dict):
        raise bad_request("a message must be an object", where)
    if message.get("role") not in _ROLES:
        raise bad_request(f"role must be one of {', '.join(_ROLES)}", f"{where}.role")
    content = message.get("content")
    parts = isinstance(content, list) and all(_is_part(part) for part in content)
    calls_only = content is None and message["role"] == "assistant"
    if not (isinstance(content, str) or parts or calls_only):
        raise bad_request("content must be text or a list of parts", f"{where}.content")


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return False
    return part["type"] != "text" or isinstance(part.get("text"), str)


def _check_kinds(fields: Mapping[str, Any]) -> None:
    for key, (kind, words) in _KINDS.items():
        if fields.get(key) is not None and not isinstance(fields[key], kind):
            raise bad_request(f"{key} must be {words}", key)
    stop, seed = fields.get("stop"), fields.get("seed")
    texts = stop if isinstance(stop, list) else [stop]
    if stop is not None and not all(isinstance(text, str) for text in texts):
        raise bad_request("stop must be a text or a list of texts", "stop")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed not in _SEEDS):
        raise bad_request("seed must be a whole number of 64 bits", "seed")


def _check_lengths(fields: Mapping[str, Any]) -> None:
    most = fields.get("max_completion_tokens") or fields.get("max_tokens")
    if most is not None and (fields.get("min_tokens") or 0) > most:
        raise bad_request("min_tokens is larger than the longest answer asked for", "min_tokens")


def _check_stream_options(fields: Mapping[str, Any], *, stream: bool) -> None:
    options = fields.get("stream_options")
    if options is None:
        return
    if not isinstance(options, dict):
        raise bad_request("stream_options must be an object", "stream_options")
    if not stream:
        raise bad_request("stream_options can only be set when stream is true", "stream_options")
    if not isinstance(options.get("include_usage") or False, bool):
        raise bad_request("include_usage must be true or false", "stream_options.include_usage")


def _check_number(fields: Mapping[str, Any], key: str, least: float, most: float, *, whole: bool = False) -> None:
    value = fields.get(key)
    if value is None:
        return
    number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise bad_request(f"{key} must be a {'whole ' if whole else ''}number from {least} to {most}", key)
