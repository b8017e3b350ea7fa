"""The KV connector of a disaggregated engine: what is kept for a peer and until when, what is fetched from one. Pure.

    prefill   prompt computed ── keep ──► blocks held ── a peer took them, or the lease ended ──► blocks free
    decode    asked with a reference ── fetch ──► deferred ── fetched ──► queued as if computed here
                                                           └─ failed ──► 500, or computed here after all

It does what vLLM 0.32 with its NixlConnector was seen to do: a decode that fetches waits without any limit, and a
reference is believed, whatever prompt it was made for. The bytes travel in `worker`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Reference = Mapping[str, Any]
"""vLLM's `kv_transfer_params`: who holds which blocks of which prompt."""

Stage = Literal["handshake", "transfer"]
STAGES: tuple[Stage, ...] = ("handshake", "transfer")
ASK: Reference = {"do_remote_decode": True, "do_remote_prefill": False}
"""What a request for prefill says."""


@dataclass(frozen=True)
class KvTransfer:
    """The connector's settings. A producer listens on `side_channel` and `transfer`, and tells its peers to come to
    `side_channel_via` and `transfer_via`. Times in seconds; `bytes_per_token` is the size of a token's keys and values.
    """

    role: Literal["producer", "consumer"]
    side_channel: str = ""
    transfer: str = ""
    side_channel_via: str = ""
    transfer_via: str = ""
    lease_s: float = 30.0
    policy: Literal["fail", "recompute"] = "fail"
    handshake_s: float = 4.5
    bytes_per_token: int = 1024

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read it. Raises ValueError that names the key."""
        if unknown := sorted(set(record) - {each.name for each in dataclasses.fields(cls)}):
            raise ValueError(f"engine config: unknown key 'kv_transfer.{unknown[0]}'")
        settings = cls(**record)
        if settings.role not in {"producer", "consumer"}:
            raise ValueError("engine config: kv_transfer.role is producer or consumer")
        if settings.policy not in {"fail", "recompute"}:
            raise ValueError("engine config: kv_transfer.policy is fail or recompute")
        if settings.role == "producer" and not (settings.side_channel and settings.transfer):
            raise ValueError("engine config: kv_transfer: a producer needs side_channel and transfer")
        return settings


@dataclass(frozen=True)
class Held:
    """Blocks that wait for a peer until `until`."""

    blocks: Sequence[int]
    until: float


@dataclass
class Counts:
    """What the metrics tell; `fetches` are the seconds of each since the last report."""

    expired: int = 0
    failed_transfers: int = 0
    failed_notifications: int = 0
    fetches: list[float] = field(default_factory=list)


class KvConnector:
    """The state. `orders` are messages for the worker that nobody has taken yet."""

    def __init__(self, settings: KvTransfer, engine_id: str) -> None:
        """Nothing is held and nothing is fetched. An engine gets another id with every life."""
        self.orders: list[dict[str, Any]] = []
        self.counts = Counts()
        self._settings = settings
        self._engine_id = engine_id
        self._held: dict[str, Held] = {}
        self._stages: dict[str, Stage] = {}

    @property
    def recomputes(self) -> bool:
        """Whether what could not be fetched is computed here."""
        return self._settings.policy == "recompute"

    def keep(self, name: str, blocks: Sequence[int], words: Sequence[str], size: int, now: float) -> Reference:
        """Hold the blocks of a computed prompt, whose words are these, for whoever comes with the reference. It names
        the request as its caller did, so that the caller can tell its own.
        """
        written = [[block, list(words[n * size : (n + 1) * size])] for n, block in enumerate(blocks)]
        self.orders.append({"op": "write", "blocks": written})
        self._held[name] = Held(blocks, now + self._settings.lease_s)
        host, _, port = (self._settings.side_channel_via or self._settings.side_channel).rpartition(":")
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [list(blocks)],
            "remote_engine_id": self._engine_id,
            "remote_request_id": name,
            "remote_host": host,
            "remote_port": int(port),
            "tp_size": 1,
            "remote_num_tokens": len(words),
        }

    def taken(self, request: str) -> Sequence[int]:
        """A peer has fetched them: the blocks to free, none when it came too late."""
        held = self._held.pop(request, None)
        return held.blocks if held else ()

    def expire(self, now: float) -> list[int]:
        """Blocks whose lease has ended; each prompt of them counts once."""
        over = [request for request, held in self._held.items() if held.until <= now]
        self.counts.expired += len(over)
        return [block for request in over for block in self._held.pop(request).blocks]

    def next_expiry(self) -> float | None:
        """When the next lease ends."""
        return min((held.until for held in self._held.values()), default=None)

    def fetch(self, name: str, reference: Reference) -> None:
        """Have the worker fetch what the reference names."""
        self._stages[name] = "handshake"
        self.orders.append({"op": "fetch", "id": name, "from": dict(reference)})

    def proceeds(self, name: str, stage: Stage) -> None:
        """A fetch has come so far."""
        if name in self._stages:
            self._stages[name] = stage

    def fetched(self, name: str, seconds: float) -> None:
        """It is here."""
        self._stages.pop(name, None)
        self.counts.fetches.append(seconds)

    def failed(self, name: str) -> None:
        """It will not come. A handshake that failed was no transfer."""
        self.counts.failed_transfers += self._stages.pop(name, None) == "transfer"

    def give_up(self, name: str) -> None:
        """Nobody waits for it any more."""
        if self._stages.pop(name, None):
            self.orders.append({"op": "drop", "id": name})

    def report(self) -> dict[str, Any]:
        """For the metrics; what happened since the last report is told once."""
        fetches, self.counts.fetches = self.counts.fetches, []
        stages = list(self._stages.values())
        return {**vars(self.counts), "fetches": fetches, "stages": {stage: stages.count(stage) for stage in STAGES}}
