"""Harm that is a condition of the GPU under a target: brought about by its device process, taken away by name.

The conditions come and go over the device process's control routes. What is looked at is another thing: NVML's answers
and the exporter's series, as an operator's tools read them, and an answer of the model server on that GPU.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in, must_answer
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.replies import by_hand, nobody_there, told
from chaos.faults.grips.streams import served_model
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, HttpReply

_TOKENS = 4
_PACE_S = 5.0
FIDELITY = "simulated device"
GPU_IS_LOST = 15
"""NVML_ERROR_GPU_IS_LOST."""

Answers = Mapping[str, Mapping[str, Any]]
View = Callable[[Answers], tuple[bool, str]]
"""Reads NVML's answers: is the harm there, and what exactly do they say?"""


@dataclass(frozen=True)
class Device:
    """One GPU: the device process's `host:port`, the GPU's name there, and the grip on the target that uses it.

    `before` is what the fault noted of it in `prepare`. `token_file` lets us change its condition.
    """

    admin: str
    id: str
    grip: Grip
    model: str
    before: Mapping[str, Any] = field(default_factory=dict)
    token_file: str | None = None

    async def control(self, method: str, url: str, host: Host, body: Any = None) -> HttpReply:
        """A call of a control route."""
        return await host.http.call(method, url, body, token_file=self.token_file)

    @property
    def url(self) -> str:
        """Of its control routes."""
        return f"http://{self.admin}/devices/{quote(self.id, safe='')}"

    def condition_url(self, mark: str) -> str:
        """Of one condition."""
        return f"{self.url}/conditions/{quote(mark, safe='')}"

    async def conditions(self, host: Host) -> Mapping[str, Any] | None:
        """What is wrong with it, by mark; None when nobody answers."""
        reply = await self.control("GET", self.url, host)
        return dict(json.loads(reply.body)["conditions"]) if reply.status == 200 else None

    async def nvml(self, host: Host) -> Answers | None:
        """NVML's answers about it by function name; None when nobody answers."""
        reply = await host.http.call("GET", f"http://{self.admin}/nvml/v1/devices/{quote(self.id, safe='')}")
        return dict(json.loads(reply.body)) if reply.status == 200 else None

    async def completion(self, host: Host) -> int:
        """Status of a one-token answer of the target itself; 0 when none came in time."""
        return (await self.ask(1, ANSWER_S, host)).status

    async def ask(self, tokens: int, timeout_s: float, host: Host) -> HttpReply:
        """An answer of so many tokens, of the target itself."""
        question = {"model": self.model, "prompt": "ping", "max_tokens": tokens, "ignore_eos": True}
        return await host.http.call("POST", f"http://{self.grip.address}/v1/completions", question, timeout_s=timeout_s)

    async def pace_s(self, host: Host, times: int = 1) -> float | None:
        """Seconds for some tokens, the best of so many times, since whatever else goes on only makes it slower; None
        when no answer came.
        """
        took = []
        for _ in range(times):
            began = host.clock.now()
            if (await self.ask(_TOKENS, _PACE_S, host)).status == HTTPStatus.OK:
                took.append(host.clock.now() - began)
        return min(took, default=None)


def without_device(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Why GPUs cannot be harmed: a sentence for each target whose GPU is not known."""
    return tuple(
        f"{t.name}: the inventory names no GPU that could be harmed (the handle `device` is missing); "
        "choose a target of role engine or fallback-engine"
        for t in targets
        if not t.handles.get("device")
    )


Note = Callable[[Device, Answers, Host], Awaitable[Mapping[str, Any]]]
"""What a fault wants to remember of a GPU before it harms it, from NVML's answers and looks of its own."""


async def prepared(kind: str, targets: tuple[Target, ...], note: Note, host: Host) -> dict[str, Any]:
    """An undo with the name of the condition to be. Raises CannotInject for a dead target or an unknown GPU."""
    records = []
    for target in targets:
        await must_answer(target, host)
        handle = target.handles["device"]
        device = Device(handle["admin"], handle["id"], Grip.of(target), await served_model(target, host))
        answers = await device.nvml(host)
        if answers is None:
            raise CannotInject(f"{target.name}: nobody at {device.admin} knows the GPU {device.id}")
        known = {"admin": device.admin, "id": device.id, "model": device.model, "token_file": handle.get("token_file")}
        records.append({**device.grip.to_json(), **known, "before": await note(device, answers, host)})
    return {"mark": new_mark(kind), "targets": records}


def devices_in(undo: Undo) -> Iterator[Device]:
    """The GPUs that `prepare` stored."""
    for record, grip in zip(undo["targets"], grips_in(undo), strict=True):
        yield Device(record["admin"], record["id"], grip, record["model"], record["before"], record.get("token_file"))


async def put(undo: Undo, condition: Mapping[str, Any], host: Host) -> None:
    """Bring the condition about on each GPU. Raises CannotInject."""
    for device in devices_in(undo):
        reply = await device.control("POST", f"{device.url}/conditions", host, {**condition, "mark": undo["mark"]})
        if reply.status != 201:
            raise CannotInject(f"{device.grip.name}: the device process refused the condition: {told(reply)}")


async def take_away(undo: Undo, host: Host) -> None:
    """Take the condition from each GPU. Raises RevertFailed."""
    await all_of(_repair(device, undo["mark"], host) for device in devices_in(undo))


async def _repair(device: Device, mark: str, host: Host) -> None:
    url = device.condition_url(mark)
    reply = await device.control("DELETE", url, host)
    if reply.status not in (204, 404) and not nobody_there(reply):
        command = by_hand(f"-X DELETE {url}", device.token_file)
        raise RevertFailed(
            f"{device.grip.name}: GPU {device.id} keeps condition {mark}: {told(reply)}; by hand: {command}"
        )


async def seen_by_nvml(device: Device, view: View, host: Host) -> Sighting:
    """Do NVML's answers show the harm?"""
    answers = await device.nvml(host)
    seen, what = view(answers) if answers is not None else (False, "NVML does not answer")
    return Sighting(seen, f"{device.grip.name}: {what}")


async def seen_well(device: Device, undo: Undo, view: View, host: Host) -> Sighting:
    """Is our condition gone, do NVML's answers show no harm, and does the target answer?

    Where other faults still act on the same GPU, that ours is gone is all that can be said.
    """
    conditions = await device.conditions(host)
    if conditions and undo["mark"] in conditions:
        return Sighting(seen=False, what=f"{device.grip.name}: condition {undo['mark']} is still there")
    if conditions:
        others = ", ".join(conditions)
        return Sighting(seen=True, what=f"{device.grip.name}: condition gone; others still act on the GPU: {others}")
    harm, status = await seen_by_nvml(device, view, host), await device.completion(host)
    return Sighting(not harm.seen and status == 200, f"{harm.what}; the observer's own completion got status {status}")


def returned(answers: Answers, function: str) -> int:
    """NVML's return code of a call."""
    return int(answers[function]["return"])


def value(answers: Answers, function: str) -> Any:
    """What an NVML call gave; None when it failed."""
    return answers[function]["value"]


async def exported(device: Device, series: str, host: Host) -> float | None:
    """The exporter's present value of a series of this GPU; None when there is none."""
    reply = await host.http.call("GET", f"http://{device.admin}/metrics")
    lines = (line for line in reply.body.splitlines() if line.startswith(f"{series}{{"))
    mine = (line for line in lines if f'UUID="GPU-{device.id}"' in line)
    return next((float(line.rpartition(" ")[2]) for line in mine), None)
