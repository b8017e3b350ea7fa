"""What the device process answers: pure routing from a request to status and body, over the GPUs of the stack.

    GET    /ping  /metrics                                   liveness; dcgm-exporter's series
    GET    /nvml/v1/devices[/{id}[/{function}]]              NVML's terms (target_stack.device.nvml)
    GET    /devices[/{id}]                                   conditions in force; this and what follows wants the token
    POST   /devices/{id}/conditions   {"mark", "kind", ...}  harm (target_stack.device.conditions)
    DELETE /devices/{id}/conditions/{mark}                   repair; safe to repeat
    GET    /debug/events?after=N                             the Xid log of all devices

Out of band, like a management controller: it runs on no node, so it outlives the loss of any.
"""

from __future__ import annotations

import dataclasses
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from target_stack.device import nvml
from target_stack.device.conditions import BadCondition, read_condition
from target_stack.device.dcgm import exposition
from target_stack.device.gpu import Gpu

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """A reply."""

    status: int
    body: str
    content_type: str = "application/json"


class Panel:
    """All GPUs of the stack, by id; an index or a UUID finds them too."""

    def __init__(self, gpus: Sequence[Gpu], token: str | None = None) -> None:
        """The devices in the order of their indices, and what is demanded of who controls them."""
        self._gpus = gpus
        self._wanted = f"Bearer {token}".encode() if token else None

    def tick(self, now: float) -> None:
        """Let time pass on every device."""
        for gpu in self._gpus:
            gpu.advance(now)

    def answer(self, method: str, target: str, body: bytes, now: float, authorization: str = "") -> Answer:
        """One request, at a moment, with what its header of that name says."""
        self.tick(now)
        url = urlsplit(target)
        words = tuple(unquote(word) for word in url.path.split("/") if word)
        match method, words:
            case "GET", ("ping",) | ("health",):
                return _json(200, {"status": "ok", "devices": len(self._gpus)})
            case "GET", ("metrics",):
                return Answer(200, exposition(self._gpus), _TEXT)
            case "GET", ("debug", "events"):
                after = parse_qs(url.query).get("after", ["0"])[0]
                return _json(200, self._events(int(after) if after.isdecimal() else 0))
            case "GET", ("nvml", "v1", "devices", *rest):
                return self._nvml(rest)
            case _, ("devices", *_) if not self._allows(authorization):
                return _json(401, {"error": "missing or wrong token"})
            case _, ("devices", *rest):
                return self._devices(method, rest, body, now)
        return _absent(target)

    def _allows(self, authorization: str) -> bool:
        return self._wanted is None or hmac.compare_digest(authorization.encode(), self._wanted)

    def _nvml(self, words: Sequence[str]) -> Answer:
        if not words:
            return _json(200, {"count": len(self._gpus), "devices": [gpu.id for gpu in self._gpus]})
        gpu = self._find(words[0])
        if gpu is None or len(words) > 2:
            return _absent("/".join(words))
        answers = nvml.query(gpu)
        if len(words) == 1:
            return _json(200, answers)
        found = answers.get(words[1])
        return _json(200, found) if found else _json(404, nvml.reply(nvml.FUNCTION_NOT_FOUND))

    def _devices(self, method: str, words: Sequence[str], body: bytes, now: float) -> Answer:
        if not words and method == "GET":
            return _json(200, {"devices": [_state(gpu) for gpu in self._gpus]})
        gpu = self._find(words[0]) if words else None
        if gpu is None:
            return _absent("/".join(words))
        match method, tuple(words[1:]):
            case "GET", ():
                return _json(200, _state(gpu))
            case "POST", ("conditions",):
                return _begin(gpu, body, now)
            case "DELETE", ("conditions", mark):
                return Answer(204, "") if gpu.end(mark) else _json(404, {"error": f"no condition {mark!r}"})
        return _absent("/".join(words))

    def _find(self, name: str) -> Gpu | None:
        return next((gpu for gpu in self._gpus if name in (gpu.id, str(gpu.index), nvml.uuid_of(gpu))), None)

    def _events(self, after: int) -> dict[str, Any]:
        """All Xids in the order of time; the sequence counts over all devices."""
        entries = sorted((entry.mono, gpu.index, entry.seq, gpu, entry) for gpu in self._gpus for entry in gpu.log)
        told = [
            {"seq": seq, "mono": mono, "name": "xid", "device": gpu.id, "code": entry.code, "text": entry.text}
            for seq, (mono, _, _, gpu, entry) in enumerate(entries, 1)
        ]
        return {"events": told[after:], "last": len(told)}


def _begin(gpu: Gpu, body: bytes, now: float) -> Answer:
    try:
        record = json.loads(body)
        condition = read_condition(record)
        gpu.begin(str(record.get("mark") or condition.kind), condition, now)
    except (BadCondition, ValueError) as problem:
        return _json(400, {"error": str(problem)})
    return _json(201, _state(gpu))


def _state(gpu: Gpu) -> dict[str, Any]:
    conditions = {mark: _shown(condition) for mark, condition in gpu.conditions.items()}
    return {"id": gpu.id, "index": gpu.index, "conditions": conditions, "effects": dataclasses.asdict(gpu.effects)}


def _shown(condition: Any) -> Mapping[str, Any]:
    return {"kind": condition.kind, **dataclasses.asdict(condition)}


def _absent(what: str) -> Answer:
    return _json(404, {"error": f"there is no {what}"})


def _json(status: int, value: Any) -> Answer:
    return Answer(status, json.dumps(value))
