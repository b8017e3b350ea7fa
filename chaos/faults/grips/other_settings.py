"""Faults that restart an engine with other settings than its own. All their verbs stand here.

Its supervisor starts it anew with the changed settings, and once more with its own at the revert. Only settings that
the engine itself tells (/v1/models, `vllm:cache_config_info`) can be changed: what nobody can see, nobody can confirm.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.inventory import ENGINE_ROLES, Target
from chaos.ports import Host, Need

Told = Mapping[str, Any]
"""What an engine says of itself: model, max_model_len, num_gpu_blocks, prefix_caching, block_size."""

_CACHE = re.compile(r"^vllm:cache_config_info\{([^}]*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_NAMED_OTHERWISE = {"prefix_caching": "enable_prefix_caching"}


@dataclass(frozen=True)
class OtherSettings(ABC):
    """Base of the faults; they are frozen dataclasses of settings."""

    kind: ClassVar[str]
    fidelity: ClassVar[str] = "deployment"
    observer: ClassVar[str] = (
        "the engine's own /v1/models and /metrics tell the changed settings, and no others changed"
    )
    needs: ClassVar[tuple[Need, ...]] = ()

    @abstractmethod
    def changes(self, told: Told) -> Mapping[str, Any]:
        """Which settings become which, for an engine that tells these."""

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must be an engine with a supervisor that can restart it."""
        others = (
            f"{t.name}: a {t.role} has no such settings; choose a target of role {' or '.join(ENGINE_ROLES)}"
            for t in targets
            if t.role not in ENGINE_ROLES
        )
        return (*others, *supervisor.without(targets, "restart it with other settings"))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Read what each runs with. Raises CannotInject when it does not say, or has these settings already."""
        records = []
        for target in targets:
            grip = Grip.of(target)
            told = await _told(grip, host)
            if told is None:
                raise CannotInject(f"{target.name} is dead already: it does not tell its settings at {target.address}")
            wanted = {**told, **self.changes(told)}
            if wanted == told:
                raise CannotInject(f"{target.name} has these settings already; choose others")
            records.append({**grip.to_json(), "before": told, "wanted": wanted})
        return {"mark": new_mark(self.kind), "targets": records}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Lay the settings on each; it starts anew with them. Raises CannotInject."""
        del targets
        for grip, record in zip(grips_in(undo), undo["targets"], strict=True):
            before, wanted = record["before"], record["wanted"]
            changed = {name: value for name, value in wanted.items() if value != before[name]}
            settings = {_NAMED_OTHERWISE.get(name, name): value for name, value in changed.items()}
            if grip.supervisor:
                await supervisor.lay(grip.supervisor, grip.name, undo["mark"], {"settings": settings}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each tells the changed settings."""
        del targets
        pairs = zip(grips_in(undo), undo["targets"], strict=True)
        return await every_one(_seen_running(grip, record["wanted"], host) for grip, record in pairs)

    async def revert(self, undo: Undo, host: Host) -> None:
        """Take the settings away; it starts anew with its own. Raises RevertFailed."""
        await all_of(supervisor.releases(grips_in(undo), undo["mark"], host))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each tells the settings that it had, and serves."""
        del targets
        pairs = zip(grips_in(undo), undo["targets"], strict=True)
        return await every_one(_seen_as_before(grip, record["before"], undo["mark"], host) for grip, record in pairs)


async def _told(grip: Grip, host: Host) -> dict[str, Any] | None:
    """What the engine says of itself; None when it does not answer."""
    models = await host.http.call("GET", f"http://{grip.address}/v1/models", timeout_s=ANSWER_S)
    metrics = await host.http.call("GET", f"http://{grip.address}/metrics", timeout_s=ANSWER_S)
    cache = _CACHE.search(metrics.body) if metrics.status == 200 else None
    if models.status != 200 or cache is None:
        return None
    base, labels = json.loads(models.body)["data"][0], dict(_LABEL.findall(cache[1]))
    return {
        "model": base["id"],
        "max_model_len": base["max_model_len"],
        "num_gpu_blocks": int(labels["num_gpu_blocks"]),
        "block_size": int(labels["block_size"]),
        "prefix_caching": labels["enable_prefix_caching"] == "True",
    }


async def _seen_running(grip: Grip, wanted: Told, host: Host) -> Sighting:
    told = await _told(grip, host)
    if told is None:
        return Sighting(seen=False, what=f"{grip.name}: it does not tell its settings")
    return Sighting(told == wanted, f"{grip.name}: {', '.join(f'{name} {value}' for name, value in told.items())}")


async def _seen_as_before(grip: Grip, before: Told, mark: str, host: Host) -> Sighting:
    back, same = await seen_back(grip, grip.address, mark, host), await _seen_running(grip, before, host)
    return Sighting(back.seen and same.seen, f"{back.what}; {same.what}")
