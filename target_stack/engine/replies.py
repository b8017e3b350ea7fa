"""Reply bodies and stream frames, key for key in vLLM's order. Pure: dictionaries and bytes from values.

A stream frame differs from the one before only in a few words, so each stream prepares its constant part once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

DONE = b"data: [DONE]\n\n"
_text = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would build an encoder for every token

KvReference = Mapping[str, Any] | None


@dataclass(frozen=True)
class Head:
    """What all frames of one reply share."""

    id: str
    created: int
    model: str
    fingerprint: str


@dataclass(frozen=True)
class Choice:
    """One finished choice."""

    text: str
    finish: str
    stop_reason: str | None


def _trailer(kv: KvReference) -> dict[str, Any]:
    return {"kv_transfer_params": kv, "ec_transfer_params": None, "metrics": None}


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Token counts as streams report them."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def error_frame(body: dict[str, Any]) -> bytes:
    """A failure after the 200; vLLM writes this one frame with spaces."""
    return b"data: " + json.dumps(body).encode() + b"\n\n"


class Dialect(Protocol):
    """One of the two APIs: how it writes its frames and its whole reply."""

    def first(self, choices: int) -> bytes:
        """What goes before the first token of a stream with so many choices."""
        ...

    def token(self, choice: int, piece: str, extra: str = "") -> bytes:
        """A token that is not the last; `extra` is text for the end of the frame (`usage_extra`)."""
        ...

    def last(self, choice: int, piece: str, finish: str, stop_reason: str | None, extra: str = "") -> bytes:
        """The token with the finish reason."""
        ...

    def usage(self, prompt_tokens: int, completion_tokens: int) -> bytes:
        """The frame after the last token, for who asked for it."""
        ...

    def whole(
        self, choices: Sequence[Choice], prompt_tokens: int, completion_tokens: int, kv: KvReference = None
    ) -> bytes:
        """The reply of a call without stream. `kv` is by what a peer may fetch its prompt."""
        ...


class Chat:
    """Chat completions."""

    def __init__(self, head: Head) -> None:
        """Prepare the part of a frame that never changes."""
        self._head = head
        self._opening = _opening(head, "chat.completion.chunk")

    def first(self, choices: int) -> bytes:
        """The role frames; vLLM sends them with the first token, not at acceptance."""
        delta = '"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null'
        end = f'{delta}}}],"prompt_token_ids":null,"prompt_text":null}}\n\n'
        return "".join(f'{self._opening}{{"index":{choice},{end}' for choice in range(choices)).encode()

    def token(self, choice: int, piece: str, extra: str = "") -> bytes:
        """See Dialect."""
        return self._frame(choice, piece, '"finish_reason":null', extra)

    def last(self, choice: int, piece: str, finish: str, stop_reason: str | None, extra: str = "") -> bytes:
        """See Dialect."""
        return self._frame(choice, piece, f'"finish_reason":"{finish}","stop_reason":{_text(stop_reason)}', extra)

    def usage(self, prompt_tokens: int, completion_tokens: int) -> bytes:
        """See Dialect."""
        return _usage_frame(self._opening, self._head, prompt_tokens, completion_tokens)

    def whole(
        self, choices: Sequence[Choice], prompt_tokens: int, completion_tokens: int, kv: KvReference = None
    ) -> bytes:
        """See Dialect."""
        listed = [_chat_choice(index, choice) for index, choice in enumerate(choices)]
        prompt_echoes = {"prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None}
        counts = _full_usage(prompt_tokens, completion_tokens)
        return json_bytes(_reply(self._head, "chat.completion", listed, counts) | prompt_echoes | _trailer(kv))

    def _frame(self, choice: int, piece: str, end: str, extra: str) -> bytes:
        start = f'{self._opening}{{"index":{choice},"delta":{{"content":{_text(piece)}}},"logprobs":null,'
        return f'{start}{end},"token_ids":null}}]{extra}}}\n\n'.encode()


class Completion:
    """Text completions."""

    def __init__(self, head: Head) -> None:
        """Prepare the part of a frame that never changes."""
        self._head = head
        self._opening = _opening(head, "text_completion")

    def first(self, choices: int) -> bytes:  # noqa: ARG002  the protocol's argument
        """Nothing: a text stream has no roles."""
        return b""

    def token(self, choice: int, piece: str, extra: str = "") -> bytes:
        """See Dialect."""
        return self._frame(choice, piece, '"finish_reason":null,"stop_reason":null', extra)

    def last(self, choice: int, piece: str, finish: str, stop_reason: str | None, extra: str = "") -> bytes:
        """See Dialect."""
        return self._frame(choice, piece, f'"finish_reason":"{finish}","stop_reason":{_text(stop_reason)}', extra)

    def usage(self, prompt_tokens: int, completion_tokens: int) -> bytes:
        """See Dialect."""
        return _usage_frame(self._opening, self._head, prompt_tokens, completion_tokens)

    def whole(
        self, choices: Sequence[Choice], prompt_tokens: int, completion_tokens: int, kv: KvReference = None
    ) -> bytes:
        """See Dialect."""
        listed = [_completion_choice(index, choice) for index, choice in enumerate(choices)]
        counts = _full_usage(prompt_tokens, completion_tokens)
        return json_bytes(_reply(self._head, "text_completion", listed, counts) | _trailer(kv))

    def _frame(self, choice: int, piece: str, end: str, extra: str) -> bytes:
        start = f'{self._opening}{{"index":{choice},"text":{_text(piece)},"logprobs":null,'
        return f'{start}{end},"prompt_token_ids":null,"token_ids":null}}]{extra}}}\n\n'.encode()


def usage_extra(prompt_tokens: int, completion_tokens: int) -> str:
    """What `continuous_usage_stats` adds to every frame."""
    return f',"usage":{_compact(usage(prompt_tokens, completion_tokens))}'


def fingerprint_extra(head: Head) -> str:
    """What the finish frame carries when no usage frame follows."""
    return f',"system_fingerprint":{_text(head.fingerprint)}'


def json_bytes(value: Any) -> bytes:
    """A JSON body as vLLM's framework writes it: no spaces, no escapes that UTF-8 makes needless."""
    return _compact(value).encode()


def models(
    model: str, created: int, max_model_len: int, permission_id: str, adapters: Iterable[str] = ()
) -> dict[str, Any]:
    """The list of what is served: the base model, then its adapters, which name it as their parent."""
    base: dict[str, Any] = {"id": model, "root": f"./{model}", "parent": None, "max_model_len": max_model_len}
    others = [{"id": each, "root": f"./{each}", "parent": model, "max_model_len": None} for each in adapters]
    cards = [_model_card(card, created, permission_id) for card in (base, *others)]
    return {"object": "list", "data": cards}


def _model_card(served: Mapping[str, Any], created: int, permission_id: str) -> dict[str, Any]:
    permission = {
        "id": f"modelperm-{permission_id}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": served["id"],
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": served["root"],
        "parent": served["parent"],
        "max_model_len": served["max_model_len"],
        "permission": [permission],
    }


def _opening(head: Head, kind: str) -> str:
    common = {"id": head.id, "object": kind, "created": head.created, "model": head.model}
    return f'data: {_compact(common)[:-1]},"choices":['


def _usage_frame(opening: str, head: Head, prompt_tokens: int, completion_tokens: int) -> bytes:
    end = f"{usage_extra(prompt_tokens, completion_tokens)}{fingerprint_extra(head)}}}"
    return f"{opening}]{end}\n\n".encode()


def _reply(head: Head, kind: str, choices: list[dict[str, Any]], counts: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": head.id,
        "object": kind,
        "created": head.created,
        "model": head.model,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": head.fingerprint,
        "usage": counts,
    }


def _chat_choice(index: int, choice: Choice) -> dict[str, Any]:
    return {
        "index": index,
        "message": {
            "role": "assistant",
            "content": choice.text,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": None,
        },
        "logprobs": None,
        "finish_reason": choice.finish,
        "stop_reason": choice.stop_reason,
        "token_ids": None,
        "routed_experts": None,
    }


def _completion_choice(index: int, choice: Choice) -> dict[str, Any]:
    return {
        "index": index,
        "text": choice.text,
        "logprobs": None,
        "finish_reason": choice.finish,
        "stop_reason": choice.stop_reason,
        "token_ids": None,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "routed_experts": None,
    }


def _full_usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    return {**usage(prompt_tokens, completion_tokens), "prompt_tokens_details": None, "completion_tokens_details": None}


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
