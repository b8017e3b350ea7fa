"""When one answer may serve several requests, how long it is kept, and which kept answer fits a question.

An answer is shared by requests that are the same but for how they want it delivered (`identity`), whose callers left
nothing to chance and nothing to one user. Near in meaning is not the same: "where do orders wait" and "how long do
orders wait" are neighbours in every embedding, so a kept answer must also agree in question words, numbers and
negations.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Use = Literal["alone", "flight", "cache"]
"""alone: an answer of one's own; flight: one that is under way for another will do; cache: a kept one as well."""

HEADER = "x-cache"
_DELIVERY = ("stream", "stream_options", "user", "safety_identifier", "metadata", "model")
_TENANT_FIELDS = ("user", "safety_identifier")
_TENANT_HEADERS = ("authorization", "x-tenant")
_ONES_OWN = ("tools", "functions", "logprobs", "seed")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’]t)?")
_TELLING = frozenset(
    re.findall(
        r"\w+",
        """who whom whose what which when where why how long much many often far old first last not no never without
        except only least most before after""",
    )
)


@dataclass(frozen=True)
class CacheSettings:
    """How long answers are kept and how like a question must be. `call_s` is the most that one look costs a request.

    `ttl_jitter` is the share of the lifetime that is left to chance, so that what was kept together does not expire
    together. `similar_in_need` holds where no model answers and the only other choice is the fixed text.
    """

    ttl_s: float = 600.0
    ttl_jitter: float = 0.2
    call_s: float = 0.1
    similar: float = 0.95
    similar_in_need: float = 0.8
    index_size: int = 2048
    index_refresh_s: float = 10.0


@dataclass(frozen=True)
class SingleFlightSettings:
    """`kind: none` gives every request an answer of its own, however many ask the same at once."""

    kind: Literal["join", "none"] = "join"


@dataclass(frozen=True)
class Identity:
    """What makes two requests the same: all that shapes the answer but the question, and the question.

    Tenant and user are part of the scope, so nothing crosses from one to another.
    """

    scope: str
    question: str

    @property
    def key(self) -> str:
        """Name of the kept answer."""
        return f"answer:{self.scope}:{_digest(self.question)}"


def use_of(fields: Mapping[str, Any], header: str | None) -> Use:
    """What a request may be served with: `x-cache` is `prefer`, `off` or absent. Raises ValueError for another word.

    Without the header only an answer that leaves nothing to chance (temperature 0) is shared, and only while it is
    made.
    """
    if header not in (None, "", "prefer", "off"):
        raise ValueError(f"{HEADER} must be prefer or off")
    chance = bool(fields.get("temperature")) or (fields.get("n") or 1) > 1
    if header == "off" or chance or any(fields.get(key) is not None for key in _ONES_OWN):
        return "alone"
    if header == "prefer":
        return "cache"
    return "flight" if fields.get("temperature") == 0 else "alone"


def identity_of(way: Sequence[str], fields: Mapping[str, Any], headers: Mapping[str, str]) -> Identity | None:
    """The identity of a chat request; None when its last message is no plain question of a user.

    `way` is what else shapes the answer: the route, the release.
    """
    last = fields["messages"][-1]
    if last["role"] != "user" or not isinstance(last.get("content"), str):
        return None
    shape = {key: value for key, value in fields.items() if key not in _DELIVERY and value is not None}
    shape["messages"] = [{**m, "content": _tidy(m.get("content"))} for m in fields["messages"][:-1]]
    tenant = [fields.get(key) for key in _TENANT_FIELDS] + [headers.get(key) for key in _TENANT_HEADERS]
    scope = json.dumps([list(way), shape, tenant], sort_keys=True, ensure_ascii=False, default=str)
    return Identity(_digest(scope), _tidy(last["content"]))


def _tidy(content: Any) -> Any:
    """Composed characters and one kind of blank between words: differences that no reader sees."""
    return " ".join(unicodedata.normalize("NFC", content).split()) if isinstance(content, str) else content


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def lifetime_s(settings: CacheSettings, rng: random.Random) -> float:
    """Seconds to keep an answer."""
    return settings.ttl_s * (1.0 - settings.ttl_jitter * rng.random())


def telling_words(question: str) -> tuple[str, ...]:
    """What two questions must have in common to mean the same: question words, negations, numbers; sorted."""
    words = (word.replace("’", "'") for word in _WORD.findall(question.lower()))
    told = {"not" if word.endswith("n't") else word for word in words if word in _TELLING or word.endswith("n't")}
    return tuple(sorted({*told, *_NUMBER.findall(question)}))


def is_keepable(reply: Mapping[str, Any]) -> bool:
    """Whether a whole reply is worth keeping: every choice said something and came to its own end."""
    choices: Sequence[Mapping[str, Any]] = reply.get("choices") or ()
    return bool(choices) and all(
        choice.get("finish_reason") == "stop" and (choice["message"].get("content") or "").strip() for choice in choices
    )
