"""From a request body to what the engine must do, or to the same complaint that vLLM would make.

Unknown fields are accepted and ignored, as vLLM does. What would change the answer's shape and is not simulated is
refused as a real server refuses it that has the feature switched off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from target_stack.engine import errors, text
from target_stack.engine.config import EngineConfig
from target_stack.engine.text import Sampling, Tokenizer

_COMPLETION_DEFAULT_TOKENS = 16
_MAX_CHOICES = 16_384

_REMOTE = ("remote_engine_id", "remote_request_id", "remote_host", "remote_port")

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})

Problem = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One checked request: `prompts` rendered texts, `n` choices for each, answered by the served id `model`. `kv` is
    what it says about where its prompt is computed, for an engine with a KV connector.
    """

    model: str
    prompts: tuple[str, ...]
    prompt_tokens: tuple[int, ...]
    n: int
    sampling: Sampling
    stream: bool
    include_usage: bool
    continuous_usage: bool
    echo: bool
    priority: int
    seed: int | None
    kv: Mapping[str, Any] | None = None


def parse_json(body: bytes) -> Any:
    """The JSON value of a body. Raises ApiError 400."""
    try:
        value = json.loads(body)
        if b"\\u" in body:  # an escape can smuggle in half a surrogate pair, which no reply could carry
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError as wrong:
        place, why = (wrong.pos, wrong.msg) if isinstance(wrong, json.JSONDecodeError) else (0, str(wrong))
        problem = {"type": "json_invalid", "loc": f"body.{place}", "msg": "JSON decode error", "input": _shown({})}
        raise errors.invalid_body([{**problem, "ctx": {"error": why}}]) from None
    return value


def chat_call(body: Any, config: EngineConfig, headers: Mapping[str, str] = _NO_HEADERS) -> Call:
    """Check a chat completion. Raises ApiError."""
    record = _checked(body, _CHAT_FIELDS, required="messages")
    _check_model(record, config)
    if record.get("logprobs") or record.get("top_logprobs"):
        raise errors.too_many_logprobs(max(1, record.get("top_logprobs") or 0))
    _check_tools(record)
    name = "max_completion_tokens" if record.get("max_completion_tokens") is not None else "max_tokens"
    prompts = (render_chat(record["messages"]),)
    return _call({**record, "priority": _priority(record, headers)}, config, prompts, max_tokens_field=name)


def completion_call(
    body: Any, config: EngineConfig, tokenizer: Tokenizer, headers: Mapping[str, str] = _NO_HEADERS
) -> Call:
    """Check a text completion. Raises ApiError."""
    record = _checked(body, _COMPLETION_FIELDS)
    _check_model(record, config)
    if record.get("logprobs") is not None:
        raise errors.too_many_logprobs(record["logprobs"])
    prompts = completion_prompts(record.get("prompt"), tokenizer)
    settled = {
        **record,
        "max_tokens": record.get("max_tokens", _COMPLETION_DEFAULT_TOKENS),
        "priority": _priority(record, headers),
    }
    return _call(settled, config, prompts, max_tokens_field="max_tokens")


def render_chat(messages: Sequence[Mapping[str, Any]]) -> str:
    """The chat template: one tagged block per message, then the place where the assistant speaks."""
    blocks = [f"<|{message['role']}|>\n{_content(message.get('content'))}\n" for message in messages]
    return "".join(blocks) + "<|assistant|>\n"


def completion_prompts(prompt: Any, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Texts of a `prompt`: a text, texts, token ids, or lists of token ids. Raises ApiError."""
    if not prompt:
        raise errors.bad_request("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    several = prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
    try:
        return tuple(each if isinstance(each, str) else tokenizer.decode(each) for each in several)
    except (text.UnknownTokenError, TypeError) as unknown:
        raise errors.bad_request(str(unknown), "prompt") from None


def tokenize_text(body: Any, config: EngineConfig) -> str:
    """The text that /tokenize counts: a prompt, or messages through the template. Raises ApiError."""
    record = _checked(body, _TOKENIZE_FIELDS)
    _check_model(record, config)
    if record.get("messages") is not None:
        return render_chat(record["messages"])
    if record.get("prompt") is None:
        raise errors.invalid_body([_missing("prompt", record)])
    prompt: str = record["prompt"]
    return prompt


def detokenize_ids(body: Any, config: EngineConfig) -> list[int]:
    """The ids that /detokenize is asked for. Raises ApiError."""
    record = _checked(body, _DETOKENIZE_FIELDS, required="tokens")
    _check_model(record, config)
    tokens: list[int] = record["tokens"]
    return tokens


def _call(record: Mapping[str, Any], config: EngineConfig, prompts: tuple[str, ...], *, max_tokens_field: str) -> Call:
    asked = record.get(max_tokens_field)
    counts = tuple(len(text.pieces(prompt)) for prompt in prompts)
    _check_lengths(asked, max_tokens_field, max(counts), config.max_model_len)
    _check_sampling(record, asked)
    if record.get("priority") and config.scheduling_policy != "priority":
        raise errors.bad_request("Got priority but priority scheduling is not enabled.", "priority")
    options = record.get("stream_options") or {}
    forced = config.enable_force_include_usage
    include_usage = forced or bool(options.get("include_usage"))
    room = config.max_model_len - max(counts)
    stop = record.get("stop") or ()
    return Call(
        model=record.get("model") or config.model,
        prompts=prompts,
        prompt_tokens=counts,
        n=record.get("n") or 1,
        sampling=Sampling(
            max_tokens=min(room, asked if asked is not None else room),
            min_tokens=record.get("min_tokens") or 0,
            ignore_eos=bool(record.get("ignore_eos")),
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
        ),
        stream=bool(record.get("stream")),
        include_usage=include_usage,
        continuous_usage=forced or (include_usage and bool(options.get("continuous_usage_stats"))),
        echo=bool(record.get("echo")),
        priority=record.get("priority") or 0,
        seed=record.get("seed"),
        kv=_kv_reference(record.get("kv_transfer_params")) if config.kv_transfer else None,
    )


def _kv_reference(asked: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """As it came, or None when it does not name a peer and its blocks: vLLM computes such a prompt itself."""
    if not asked or not asked.get("do_remote_prefill"):
        return asked
    blocks = asked.get("remote_block_ids")
    whole = isinstance(blocks, list) and len(blocks) == 1 and all(asked.get(name) for name in _REMOTE)
    return asked if whole else None


def _priority(record: Mapping[str, Any], headers: Mapping[str, str]) -> int:
    """The header wins over the field; one that is no number does not count."""
    try:
        return int(headers.get("X-Vllm-Priority", ""))
    except ValueError:
        return record.get("priority") or 0


def _check_tools(record: Mapping[str, Any]) -> None:
    """As a server without a tool parser: it can be told about tools, but not be asked to choose one."""
    choice = record.get("tool_choice", "auto" if record.get("tools") else None)
    if choice not in (None, "none") and not record.get("tools"):
        raise errors.bad_request(
            "When using `tool_choice`, `tools` must be set. (parameter=tool_choice)", "tool_choice"
        )
    if choice == "auto":
        raise errors.bad_request(
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        )


_RANGES: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "temperature": (lambda value: 0 <= value <= 2, "be in [0, 2]"),
    "top_p": (lambda value: 0 < value <= 1, "be in (0, 1]"),
    "presence_penalty": (lambda value: -2 <= value <= 2, "be in [-2, 2]"),
    "frequency_penalty": (lambda value: -2 <= value <= 2, "be in [-2, 2]"),
    "repetition_penalty": (lambda value: value > 0, "be greater than zero"),
    "min_p": (lambda value: 0 <= value <= 1, "be in [0, 1]"),
}
_REPEATED = ("temperature", "top_p")  # the others are refused without a parameter


def _check_sampling(record: Mapping[str, Any], max_tokens: int | None) -> None:
    for name, (fits, rule) in _RANGES.items():
        value = record.get(name)
        if value is None or fits(value):
            continue
        must = "be non-negative" if name == "temperature" and value < 0 else rule
        message = f"{name} must {must}, got {float(value)}."
        raise errors.out_of_range(message, name, float(value)) if name in _REPEATED else errors.bad_request(message)
    least = record.get("min_tokens") or 0
    if least < 0:
        raise errors.bad_request(f"min_tokens must be greater than or equal to 0, got {least}.")
    if max_tokens is not None and least > max_tokens:
        raise errors.bad_request(f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {least}.")
    if "" in (record.get("stop") or ()):
        raise errors.bad_request("stop cannot contain an empty string.")


def _check_lengths(asked: int | None, field: str, prompt_tokens: int, limit: int) -> None:
    if asked is not None and asked > limit:
        raise errors.output_too_long(field, asked, limit)
    if asked is not None and asked < 1:
        raise errors.out_of_range(f"max_tokens must be at least 1, got {asked}.", "max_tokens", asked)
    if prompt_tokens >= limit:
        raise errors.prompt_too_long(prompt_tokens, limit)


def _check_model(record: Mapping[str, Any], config: EngineConfig) -> None:
    model = record.get("model")
    if model and model != config.model and model not in config.adapters:
        raise errors.unknown_model(model, config.model)


_INTEGER = ("int_type", "Input should be a valid integer")
_NUMBER = ("float_type", "Input should be a valid number")
_STRING = ("string_type", "Input should be a valid string")
_BOOLEAN = ("bool_type", "Input should be a valid boolean")
_LIST = ("list_type", "Input should be a valid list")
_DICT = ("dict_type", "Input should be a valid dictionary")
_TYPES: Mapping[tuple[str, str], tuple[type, ...]] = {
    _INTEGER: (int,),
    _NUMBER: (int, float),
    _STRING: (str,),
    _BOOLEAN: (bool,),
    _LIST: (list,),
    _DICT: (dict,),
}
_COMMON_FIELDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "model": (_STRING,),
    "stream": (_BOOLEAN,),
    "stream_options": (_DICT,),
    "max_tokens": (_INTEGER,),
    "min_tokens": (_INTEGER,),
    "n": (_INTEGER,),
    "seed": (_INTEGER,),
    "stop": (_STRING, _LIST),
    "ignore_eos": (_BOOLEAN,),
    "priority": (_INTEGER,),
    "request_id": (_STRING,),
    "kv_transfer_params": (_DICT,),
    **dict.fromkeys(_RANGES, (_NUMBER,)),
}
_CHAT_FIELDS = {
    **_COMMON_FIELDS,
    "messages": (_LIST,),
    "max_completion_tokens": (_INTEGER,),
    "logprobs": (_BOOLEAN,),
    "top_logprobs": (_INTEGER,),
    "tools": (_LIST,),
    "tool_choice": (_STRING, _DICT),
}
_COMPLETION_FIELDS = {
    **_COMMON_FIELDS,
    "prompt": (_STRING, _LIST),
    "echo": (_BOOLEAN,),
    "logprobs": (_INTEGER,),
}
_TOKENIZE_FIELDS = {"model": (_STRING,), "prompt": (_STRING,), "messages": (_LIST,)}
_DETOKENIZE_FIELDS = {"model": (_STRING,), "tokens": (_LIST,)}


def _checked(
    body: Any, fields: Mapping[str, tuple[tuple[str, str], ...]], *, required: str | None = None
) -> Mapping[str, Any]:
    """The body, when it is an object whose known fields have the right types. Raises ApiError with every problem."""
    if not isinstance(body, dict):
        problem = {
            "type": "model_attributes_type",
            "loc": "body",
            "msg": "Input should be a valid dictionary or object",
        }
        raise errors.invalid_body([{**problem, "input": _shown(body)}])
    problems: list[Problem] = [_missing(required, body)] if required and required not in body else []
    for field, kinds in fields.items():
        nullable = field != required
        if field in body and not (nullable and body[field] is None):
            problems += _type_problems(field, body[field], kinds)
    problems = problems or _deep_problems(body)
    if problems:
        raise errors.invalid_body(problems)
    return body


def _type_problems(field: str, value: Any, kinds: tuple[tuple[str, str], ...]) -> list[Problem]:
    for kind in kinds:
        # bool is an int to Python, but not to a caller.
        if isinstance(value, _TYPES[kind]) and (kind is _BOOLEAN or not isinstance(value, bool)):
            return []
    return [{"type": name, "loc": f"body.{field}", "msg": msg, "input": _shown(value)} for name, msg in kinds]


def _deep_problems(body: Mapping[str, Any]) -> list[Problem]:
    """What a wrong type does not show: messages without a role, too many choices, options without a stream."""
    messages = enumerate(body.get("messages") or ())
    problems = [each for index, message in messages for each in _message_problems(index, message)]
    choices = body.get("n")
    if choices is not None and not 1 <= choices <= _MAX_CHOICES:
        problems.append(_value_problem("body.n", f"n must be from 1 to {_MAX_CHOICES}", choices))
    if body.get("stream_options") and not body.get("stream"):
        problems.append(_value_problem("body", "Stream options can only be defined when `stream=True`.", body))
    stop = body.get("stop")
    if isinstance(stop, list) and not all(isinstance(each, str) for each in stop):
        problems.append({"type": "string_type", "loc": "body.stop", "msg": _STRING[1], "input": _shown(stop)})
    return problems


def _message_problems(index: int, message: Any) -> list[Problem]:
    where = f"body.messages.{index}"
    if not isinstance(message, dict):
        return [{"type": "dict_type", "loc": where, "msg": _DICT[1], "input": _shown(message)}]
    if not isinstance(message.get("role"), str):
        return [{"type": "missing", "loc": f"{where}.role", "msg": "Field required", "input": _shown(message)}]
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        return [{"type": "string_type", "loc": f"{where}.content", "msg": _STRING[1], "input": _shown(content)}]
    return []


def _missing(field: str, body: Any) -> Problem:
    return {"type": "missing", "loc": f"body.{field}", "msg": "Field required", "input": _shown(body)}


def _value_problem(loc: str, why: str, value: Any) -> Problem:
    return {"type": "value_error", "loc": loc, "msg": f"Value error, {why}", "input": _shown(value)}


def _shown(value: Any) -> Any:
    """Containers are named by their size: a complaint must not repeat a whole prompt."""
    if isinstance(value, dict | list):
        return f"<{type(value).__name__} of {len(value)} items>"
    return value


def _content(content: Any) -> str:
    """A message's text; of content parts, the text parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""
