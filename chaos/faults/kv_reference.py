"""A prefill engine's references are wrong when they arrive: those of another prompt, of long ago, of another life.

Decode engines believe any reference. One of another prompt brings status 200 and the other prompt's words, and nothing
counts a failure anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.choosing import share_of
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.one_toxic import OneToxic, Toxic
from chaos.faults.grips.streams import served_model
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting
from chaos.units import Ratio

_ASK = {"do_remote_decode": True, "do_remote_prefill": False}
_SHORT, _LONG = "ping", "ping " * 97
_FAR = 1 << 20
"""No engine has so many blocks."""


@dataclass(frozen=True)
class KvReference(OneToxic):
    """Rewrites `kv_transfer_params` in the fault proxy before a prefill engine."""

    kind: ClassVar[str] = "kv_reference"
    summary: ClassVar[str] = "References to KV blocks are those of another prompt, of long ago, or of an earlier life."
    fidelity: ClassVar[str] = "HTTP, of a simulated KV connector"
    observer: ClassVar[str] = (
        "the observer's own prompt gets another reference through the edge than directly, and the proxy counts hits"
    )
    needs: ClassVar[tuple[Need, ...]] = ()

    damage: Literal["swapped", "expired", "stale", "out_of_range"] = setting(
        "swapped: that of the prompt before; expired: the first that passed; stale: of an earlier life of the engine; "
        "out_of_range: blocks that do not exist",
        default="swapped",
    )
    share: Ratio = share_of("the references that are wrong")

    def toxic(self) -> Toxic:
        """As the settings say."""
        return Toxic("http_rewrite_kv_reference", {"damage": self.damage}, float(self.share))

    def obstacles(self, targets: tuple[Target, ...], /) -> tuple[str, ...]:
        """A target must hand on KV blocks."""
        return tuple(
            f"{t.name}: a {t.role} gives no references; choose a target of role prefill (profile embedded-pd)"
            for t in targets
            if t.role != "prefill"
        )

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """The names by which the observer asks. Raises CannotInject."""
        return {"models": {target.name: await served_model(target, host) for target in targets}}

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The observer's second prompt, longer than its first, gets a reference that a direct answer does not give."""
        await _reference(grip.via or grip.address, _SHORT, grip, undo, host)
        via = await _reference(grip.via or grip.address, _LONG, grip, undo, host)
        direct = await _reference(grip.address, _LONG, grip, undo, host)
        witness = await toxics.witness(grip, undo["toxic"], host)
        differs = bool(via and direct) and not _alike(via, direct)
        what = f"{grip.name}: through {grip.via} a prompt got {_told(via)}, directly {_told(direct)}; {witness.what}"
        return Sighting(differs and witness.seen, what)

    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """It gets what a direct answer gives."""
        via = await _reference(grip.via or grip.address, _LONG, grip, undo, host)
        direct = await _reference(grip.address, _LONG, grip, undo, host)
        return Sighting(bool(via and direct) and _alike(via, direct), f"a prompt got {_told(via)} through {grip.via}")


async def _reference(address: str, prompt: str, grip: Grip, undo: Undo, host: Host) -> Mapping[str, Any]:
    """By what a prompt of the observer's own may be fetched; empty when no reference came."""
    body = {"model": undo["models"][grip.name], "prompt": prompt, "max_tokens": 1, "kv_transfer_params": _ASK}
    url = toxics.observing(address, "/v1/completions", undo["toxic"])
    reply = await host.http.call("POST", url, body, timeout_s=ANSWER_S)
    found: Mapping[str, Any] = (json.loads(reply.body).get("kv_transfer_params") or {}) if reply.status == 200 else {}
    return found


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both name as many tokens of the same life of an engine, in blocks that there may be."""
    same = all(one.get(key) == other.get(key) for key in ("remote_engine_id", "remote_num_tokens"))
    return same and all(block < _FAR for block in one["remote_block_ids"][0])


def _told(reference: Mapping[str, Any]) -> str:
    if not reference:
        return "no reference"
    blocks, engine = reference["remote_block_ids"][0], str(reference["remote_engine_id"])[:8]
    return f"{reference['remote_num_tokens']} tokens in {len(blocks)} blocks (from {min(blocks)}) of engine {engine}"
